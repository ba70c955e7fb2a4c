import { field, integer, oneOf } from "../../options/field.ts"
import type { OptionsOf, ResolvedOf } from "../../options/table.ts"
import { agentFields } from "../agent.ts"
import { readOptions } from "../options.ts"
import { observationField } from "../picture.ts"
import type { SokobanTask } from "./tasks.ts"

const side = integer(6, "Height or width.", { min: 3, max: 50 })

export const sokobanFields = {
  size: field(
    [6, 6] as readonly [height: number, width: number],
    "Height and width of the room in cells, walls included; 3 to 50 each.",
    (value) =>
      Array.isArray(value) && value.length === 2
        ? value.map(side.validate).find((problem) => problem)
        : "must be [height, width]",
  ),
  boxes: integer(1, "Number of boxes and of targets; 1 to 20.", { min: 1, max: 20 }),
  searchDepth: integer(
    30,
    "Depth to which the generator generates a level backwards; 3 to 1000. Large levels with a deep search take long: 10 × 10 cells with " +
      "4 boxes at depth 120 take about 0.1 s per room.",
    { min: 3, max: 1000 },
  ),
  maxSteps: integer(
    15,
    "Maximum number of steps of an episode; 1 to 10,000. `still` and invalid completions count too.",
    { min: 1, max: 10_000 },
  ),
  heldOut: oneOf(
    "layout",
    ["layout", "seed"],
    'Separation of test levels from training levels. "layout": no arrangement of walls and targets occurs in both, so no ' +
      'state of a test episode can occur in training. "seed": only the seeds differ, as in verl-agent; small rooms ' +
      "then repeat (of 256 default test levels, 103 are among the first 5,000 training levels).",
  ),
  observation: observationField(),
  ...agentFields<SokobanTask>(),
}

/** Options of `sokoban`. */
export type SokobanOptions = OptionsOf<typeof sokobanFields>
export type SokobanSettings = ResolvedOf<typeof sokobanFields>

/** Options with defaults. Throws `BAD_CONFIG` for unknown or invalid options. */
export function resolveOptions(options: SokobanOptions): SokobanSettings {
  return readOptions("sokoban", options, sokobanFields)
}
