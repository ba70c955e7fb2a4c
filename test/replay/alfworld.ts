import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Game } from "../../src/environment/alfworld/game.ts"
import { type GameFile, readGameFile } from "../../src/environment/alfworld/game-file.ts"
import { GigpoError } from "../../src/util/errors.ts"
import type { Difference, Replay } from "./replay.ts"

/** An episode that TextWorld's engine played. */
interface EpisodeRecord {
  /** Path of the game below the data folder. */
  readonly game: string
  /** Whether the game's own texts were played, or its problem with the rules of ALFWorld 0.4.2. */
  readonly logic: "file" | "0.4.2"
  /** The task sentence without its full stop. */
  readonly task: string
  readonly steps: readonly StepRecord[]
}

interface StepRecord {
  /** The command sent; null for the reset. */
  readonly cmd: string | null
  readonly obs: string
  /** The sorted admissible commands, or the first 16 hexadecimal digits of the SHA-1 of their lines. */
  readonly adm: string | readonly string[]
  readonly won: boolean
}

/** Plays the recorded commands; texts, admissible commands and success must be equal at every step. */
export const replayAlfworld: Replay = async function* (data, records) {
  for await (const record of records as AsyncIterable<EpisodeRecord>) {
    if (typeof record?.game !== "string" || !Array.isArray(record.steps)) {
      throw new GigpoError("BAD_DATA", "A line of the recording is no episode of ALFWorld: it lacks game or steps.")
    }
    const path = join(data, record.game)
    const file = readGameFile(await readText(path), path)
    yield* episodeDifferences(record, Game.parse(record.logic === "0.4.2" ? toNewerRules(file, record) : file, path))
  }
}

function* episodeDifferences({ game, logic, steps }: EpisodeRecord, parsed: Game): Generator<Difference[]> {
  const world = parsed.start()
  for (const [index, step] of steps.entries()) {
    const differences: Difference[] = []
    const compare = (what: string, expected: string, actual: string) => {
      const where = `${game} (${logic}), step ${index}: ${step.cmd ?? "reset"}: ${what}`
      if (expected !== actual) differences.push({ where, expected, actual })
    }
    compare("text", step.obs, step.cmd === null ? world.text : world.step(step.cmd))
    const admissible = world.admissible().join("\n")
    if (typeof step.adm === "string") compare("commands", step.adm, digest(admissible))
    else compare("commands", step.adm.join("\n"), admissible)
    compare("won", String(step.won), String(world.won))
    yield differences
  }
}

function digest(text: string): string {
  return createHash("sha1").update(text).digest("hex").slice(0, 16)
}

/**
 * The texts of a game of ALFWorld 0.2 as 0.4.2 has them: things are moved instead of put, one arrives at a receptacle instead
 * of a location, only sink basins clean, and there is `help`. Its text stands in the recording, where it was asked for.
 */
function toNewerRules({ domain, grammar, problem }: GameFile, { task, steps }: EpisodeRecord): GameFile {
  const help = steps.find((step) => step.cmd === "help")?.obs ?? "not recorded"
  const rule = JSON.stringify({ "help.feedback": [{ rhs: help }] })
  const end = domain.lastIndexOf(")")
  return {
    problem,
    domain: `${domain.slice(0, end).replace("(receptacleType ?r SinkType)", "")}
      (:action help :parameters (?a - agent) :precondition () :effect (and (checked ?a))))`,
    grammar: `${grammar
      .replaceAll("{lend.name}", "{r.name}")
      .replaceAll("You put the {o.name} in/on the {r.name}.", "You move the {o.name} to the {r.name}.")
      .replaceAll("put {o} in/on {r}", "move {o} to {r}")
      .replace(/(Your task is to: )[^"]*"/, (_, start) => `${start}${task}."`)}
      action help { template :: "help"; feedback :: "#help.feedback#"; grammar :: """${rule}"""; }`,
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8")
  } catch (cause) {
    throw new GigpoError("IO", `Cannot read the recorded game ${path}: ${(cause as Error).message}.`, { cause })
  }
}
