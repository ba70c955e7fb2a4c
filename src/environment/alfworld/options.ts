import { resolve } from "node:path"
import { GigpoError } from "../../errors.ts"
import { type AgentOptions, agentFields } from "../agent.ts"
import { abortSignal, type Fields, flag, oneOf, optional, type Resolved, readOptions, text, whole } from "../options.ts"
import { type HouseholdOptions, householdFields } from "./generate/options.ts"
import type { AlfworldTask } from "./tasks.ts"

export interface AlfworldOptions extends AgentOptions<AlfworldTask>, HouseholdOptions {
  /**
   * Folder with ALFWorld's games: `json_2.1.1` as `alfworld-download` makes it, or the folder around it. Left out, we
   * generate households of our own; `size`, `wording` and `scenes` are for those alone.
   */
  readonly data?: string | undefined
  /** Folder of the training games in `data`. Default "train". */
  readonly trainSplit?: string
  /**
   * Games of the test split: "valid_seen" for rooms that training knows, "valid_unseen" for others. Default
   * "valid_seen", as in verl-agent. With `data` the name of a folder there.
   */
  readonly testSplit?: string
  /** Steps after which an episode is cut off; 1 to 10,000. Default 50. */
  readonly maxSteps?: number
  /** Whether the prompt lists the commands that do something. Default true. */
  readonly admissible?: boolean
  /**
   * How the expert plays: "plan" knows the whole game and goes the shortest way, "explore" knows only what it has read.
   * Default "plan".
   */
  readonly expert?: "plan" | "explore"
  /** Aborts the reading of the data folder. */
  readonly signal?: AbortSignal | undefined
}

const fields: Fields<AlfworldOptions> = {
  ...agentFields<AlfworldTask>(),
  ...householdFields,
  data: optional(text("")),
  trainSplit: text("train"),
  testSplit: text("valid_seen"),
  maxSteps: whole(50, 1, 10_000),
  admissible: flag(true),
  expert: oneOf("plan", ["plan", "explore"]),
  signal: abortSignal(),
}

/** Fills in the defaults. Throws `BAD_CONFIG` at the first option that is unknown, wrong or has nothing to do. */
export function resolveOptions(options: AlfworldOptions): Resolved<AlfworldOptions> {
  const resolved = readOptions<AlfworldOptions>("alfworld", options, fields)
  const fail = (reason: string) => {
    throw new GigpoError("BAD_CONFIG", `alfworld: ${reason}.`)
  }
  if (resolved.data !== undefined) {
    for (const key of ["size", "wording", "scenes"] as const) {
      if (options[key] !== undefined) fail(`${key} is for generated households; leave it out where data is given`)
    }
    // Whether written as `train`, `./train` or `train/`.
    if (resolve(resolved.trainSplit) === resolve(resolved.testSplit))
      fail(`trainSplit and testSplit are both "${resolved.testSplit}"; test on games that are not trained on`)
  } else {
    if (options.trainSplit !== undefined) fail("trainSplit names a folder in data; give data or leave it out")
    if (!["valid_seen", "valid_unseen"].includes(resolved.testSplit)) {
      fail(`testSplit must be "valid_seen" or "valid_unseen" without data, not "${resolved.testSplit}"`)
    }
  }
  return resolved
}
