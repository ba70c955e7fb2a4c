import { field, integer, oneOf } from "../../options/field.ts"
import type { OptionsOf, Resolved } from "../../options/table.ts"
import { agentFields } from "../agent.ts"
import { readOptions } from "../options.ts"
import type { SokobanTask } from "./tasks.ts"

const side = integer(6, "One side.", { min: 3, max: 50 })

export const sokobanFields = {
  size: field(
    [6, 6] as readonly [height: number, width: number],
    "Cells of the whole room, height and width, walls included; 3 to 50 each.",
    (value) =>
      Array.isArray(value) && value.length === 2
        ? value.map(side.validate).find((problem) => problem)
        : "must be [height, width]",
  ),
  boxes: integer(1, "Boxes, and as many targets; 1 to 20.", { min: 1, max: 20 }),
  searchDepth: integer(
    30,
    "How deep the generator plays a room backwards; 3 to 1000. Large rooms searched deeply take long: 10 × 10 cells with 4 " +
      "boxes at depth 120 about 0.1 s each.",
    { min: 3, max: 1000 },
  ),
  maxSteps: integer(
    15,
    "Steps after which an episode is cut off; 1 to 10,000. `still` and unreadable replies count too.",
    { min: 1, max: 10_000 },
  ),
  heldOut: oneOf(
    "layout",
    ["layout", "seed"],
    'What keeps test rooms apart from training rooms. "layout": no arrangement of walls and targets occurs in both, so no ' +
      'position of a test episode can have been met in training. "seed": only the seeds differ, as in verl-agent; small rooms ' +
      "then repeat (of 256 default test rooms, 103 are among the first 5,000 training rooms).",
  ),
  ...agentFields<SokobanTask>(),
}

/** Options of `sokoban`. */
export type SokobanOptions = OptionsOf<typeof sokobanFields>
export type SokobanSettings = Resolved<typeof sokobanFields>

/** Fills in the defaults. Throws `BAD_CONFIG` where options are unknown or out of range. */
export function resolveOptions(options: SokobanOptions): SokobanSettings {
  return readOptions("sokoban", options, sokobanFields)
}
