import { type AgentOptions, agentFields } from "../agent.ts"
import { type Field, type Fields, oneOf, type Resolved, readOptions, whole } from "../options.ts"
import type { SokobanTask } from "./tasks.ts"

export interface SokobanOptions extends AgentOptions<SokobanTask> {
  /** Cells of the whole room, walls included; 3 to 50 each. Default [6, 6]. */
  readonly size?: readonly [height: number, width: number]
  /** Boxes, and as many targets; 1 to 20. Default 1. */
  readonly boxes?: number
  /**
   * How deep the generator plays a room backwards; 3 to 1000. Default 30. Large rooms searched deeply take long:
   * 10 × 10 cells with 4 boxes at depth 120 about 0.1 s each.
   */
  readonly searchDepth?: number
  /** Steps after which an episode is cut off; 1 to 10,000. Default 15. `still` and unreadable replies count too. */
  readonly maxSteps?: number
  /**
   * What keeps test rooms apart from training rooms. Default "layout": no arrangement of walls and targets occurs in
   * both, so no position of a test episode can have been met in training. "seed": only the seeds differ, as in
   * verl-agent; small rooms then repeat (of 256 default test rooms, 103 are among the first 5,000 training rooms).
   */
  readonly heldOut?: "layout" | "seed"
}

const side = whole(6, 3, 50)
const size: Field<readonly [number, number]> = {
  fallback: [6, 6],
  problem: (value) =>
    Array.isArray(value) && value.length === 2
      ? value.map(side.problem).find((problem) => problem)
      : "must be [height, width]",
}

const fields: Fields<SokobanOptions> = {
  size,
  boxes: whole(1, 1, 20),
  searchDepth: whole(30, 3, 1000),
  maxSteps: whole(15, 1, 10_000),
  heldOut: oneOf<"layout" | "seed">("layout", ["layout", "seed"]),
  ...agentFields<SokobanTask>(),
}

/** Fills in the defaults. Throws `BAD_CONFIG` at the first option that is unknown or out of range. */
export function resolveOptions(options: SokobanOptions): Resolved<SokobanOptions> {
  return readOptions("sokoban", options, fields)
}
