import { resolve } from "node:path"
import { abortSignal, boolean, integer, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { agentFields } from "../agent.ts"
import { readOptions } from "../options.ts"
import { householdFields } from "./generate/options.ts"
import type { AlfworldTask } from "./tasks.ts"

export const alfworldFields = {
  ...agentFields<AlfworldTask>(),
  ...householdFields,
  data: string(undefined, "Folder with ALFWorld's games: `json_2.1.1` of `alfworld-download`, or its parent folder.", {
    defaultText: "generated households; `size`, `wording` and `scenes` apply only to them",
  }),
  trainSplit: string("train", "Folder of the training games in `data`."),
  testSplit: string(
    "valid_seen",
    'Games of the test split: "valid_seen" for rooms of the training split, as in verl-agent, "valid_unseen" for other rooms. With ' +
      "`data`, the name of a folder there.",
  ),
  maxSteps: integer(50, "Maximum number of steps of an episode; 1 to 10,000.", { min: 1, max: 10_000 }),
  anchor: oneOf(
    "observation",
    ["observation", "state"],
    'Anchor state of a step. "observation": the text of the observation, as in verl-agent; every command that fails has the same text ' +
      'and thus the same anchor ("Nothing happens."). "state": the facts of the household.',
  ),
  admissible: boolean(true, "Whether the prompt lists the admissible commands."),
  expert: oneOf(
    "plan",
    ["plan", "explore"],
    'Knowledge of the expert. "plan": the whole state, from which it takes the shortest solution. "explore": only past observations.',
  ),
  signal: abortSignal("Aborts the reading of the data folder."),
}

/** Options of `alfworld`. */
export type AlfworldOptions = OptionsOf<typeof alfworldFields>
export type AlfworldSettings = ResolvedOf<typeof alfworldFields>

/** Options with defaults. Throws `BAD_CONFIG` for options that are unknown, invalid or without effect. */
export function resolveOptions(options: AlfworldOptions): AlfworldSettings {
  const resolved = readOptions("alfworld", options, alfworldFields)
  const fail = (reason: string) => {
    throw new GigpoError("BAD_CONFIG", `alfworld: ${reason}.`)
  }
  if (resolved.data !== undefined) {
    for (const key of ["size", "wording", "scenes"] as const) {
      if (options[key] !== undefined) fail(`${key} is for generated households; omit it if data is given`)
    }
    // Also equal if written as `train`, `./train` or `train/`.
    if (resolve(resolved.trainSplit) === resolve(resolved.testSplit))
      fail(`trainSplit and testSplit are both "${resolved.testSplit}"; give another folder for the test`)
  } else {
    if (options.trainSplit !== undefined) fail("trainSplit is a folder in data; give data or omit trainSplit")
    if (!["valid_seen", "valid_unseen"].includes(resolved.testSplit)) {
      fail(`testSplit must be "valid_seen" or "valid_unseen" without data, not "${resolved.testSplit}"`)
    }
  }
  return resolved
}
