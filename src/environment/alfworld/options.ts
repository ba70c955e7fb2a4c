import { resolve } from "node:path"
import { abortSignal, boolean, integer, oneOf, string } from "../../options/field.ts"
import type { OptionsOf, Resolved } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import { agentFields } from "../agent.ts"
import { readOptions } from "../options.ts"
import { householdFields } from "./generate/options.ts"
import type { AlfworldTask } from "./tasks.ts"

export const alfworldFields = {
  ...agentFields<AlfworldTask>(),
  ...householdFields,
  data: string(
    undefined,
    "Folder with ALFWorld's games: `json_2.1.1` as `alfworld-download` makes it, or the folder around it.",
    { defaultText: "households of our own are generated; `size`, `wording` and `scenes` are for those alone" },
  ),
  trainSplit: string("train", "Folder of the training games in `data`."),
  testSplit: string(
    "valid_seen",
    'Games of the test split: "valid_seen" for rooms that training knows, as in verl-agent, "valid_unseen" for others. With ' +
      "`data` the name of a folder there.",
  ),
  maxSteps: integer(50, "Steps after which an episode is cut off; 1 to 10,000.", { min: 1, max: 10_000 }),
  admissible: boolean(true, "Whether the prompt lists the commands that do something."),
  expert: oneOf(
    "plan",
    ["plan", "explore"],
    'How the expert plays: "plan" knows the whole game and goes the shortest way, "explore" knows only what it has read.',
  ),
  signal: abortSignal("Aborts the reading of the data folder."),
}

/** Options of `alfworld`. */
export type AlfworldOptions = OptionsOf<typeof alfworldFields>
export type AlfworldSettings = Resolved<typeof alfworldFields>

/** Fills in the defaults. Throws `BAD_CONFIG` where options are unknown, wrong or have nothing to do. */
export function resolveOptions(options: AlfworldOptions): AlfworldSettings {
  const resolved = readOptions("alfworld", options, alfworldFields)
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
