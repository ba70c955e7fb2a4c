import { GigpoError } from "../../util/errors.ts"

/** Contents of a `game.tw-pddl` file: rules, grammar, and a household with a goal. */
export interface GameFile {
  /** PDDL domain. */
  readonly domain: string
  /** TextWorld grammar: commands and feedback. */
  readonly grammar: string
  /** PDDL problem. */
  readonly problem: string
  /** Commands that solve the game, if the file contains them. */
  readonly walkthrough?: readonly string[]
}

/** Maximum length of a file in characters; real ones have 60 to 160 kB. */
const maxLength = 2_000_000

/**
 * Parses a `game.tw-pddl` file of ALFWorld 0.2 or 0.4. `solvable` is `undefined` if the file does not contain it. Throws `BAD_DATA` with the
 * source for an invalid file.
 */
export function readGameFile(json: string, source: string): GameFile & { solvable: boolean | null | undefined } {
  const fail = (reason: string, cause?: unknown): never => {
    throw new GigpoError("BAD_DATA", `${source}: ${reason}; fetch or generate the game again.`, { cause })
  }
  if (json.length > maxLength) fail(`a game file has at most ${maxLength} characters, this one ${json.length}`)
  let value: Record<string, unknown> | null
  try {
    value = JSON.parse(json)
  } catch (error) {
    return fail(`the game file is not JSON (${(error as Error).message})`, error)
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return fail("the game file must contain one JSON object")
  }
  const text = (key: string): string => {
    const field = value[key]
    return typeof field === "string" ? field : fail(`the game file lacks the string "${key}"`)
  }
  const { walkthrough, solvable } = value
  if (solvable !== undefined && solvable !== null && typeof solvable !== "boolean") {
    fail('"solvable" must be true, false or null')
  }
  const isPlan = Array.isArray(walkthrough) && walkthrough.every((command) => typeof command === "string")
  if (walkthrough !== undefined && walkthrough !== null && !isPlan) fail('"walkthrough" must be a list of commands')
  return {
    domain: text("pddl_domain"),
    grammar: text("grammar"),
    problem: text("pddl_problem"),
    ...(isPlan ? { walkthrough } : {}),
    solvable: solvable as boolean | null | undefined,
  }
}

/** JSON of a `game.tw-pddl` file of ALFWorld 0.4 for a solvable game. */
export function gameFileText({ domain, grammar, problem, walkthrough = [] }: GameFile): string {
  const texts = { pddl_domain: domain, grammar, pddl_problem: problem }
  return `${JSON.stringify({ ...texts, walkthrough, solvable: true })}\n`
}
