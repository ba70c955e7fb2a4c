import { GigpoError } from "../../errors.ts"

export interface SokobanOptions {
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
  /** Past steps that the prompt shows; 0 to 1000. Default 2. */
  readonly history?: number
  /**
   * Whether the prompt explains symbols, goal, rules and reply format. Default true. Without them it is the history and
   * the grid alone: for small models trained from scratch.
   */
  readonly rules?: boolean
  /**
   * Whether replies think in `<think>` tags before they act: the prompt offers it, demands it (replies without are
   * invalid, though still acted on) or does not speak of it. Default "optional".
   */
  readonly thinking?: "optional" | "required" | "off"
  /**
   * What keeps test rooms apart from training rooms. Default "layout": no arrangement of walls and targets occurs in
   * both, so no position of a test episode can have been met in training. "seed": only the seeds differ, as in
   * verl-agent; small rooms then repeat (of 256 default test rooms, 103 are among the first 5,000 training rooms).
   */
  readonly heldOut?: "layout" | "seed"
}

const defaults: Required<SokobanOptions> = {
  size: [6, 6],
  boxes: 1,
  searchDepth: 30,
  maxSteps: 15,
  history: 2,
  rules: true,
  thinking: "optional",
  heldOut: "layout",
}

/** Fills in the defaults. Throws `BAD_CONFIG` at the first option that is unknown or out of range. */
export function resolveOptions(options: SokobanOptions): Required<SokobanOptions> {
  for (const key of Object.keys(options)) {
    if (!Object.hasOwn(defaults, key)) fail(key, `is not an option; known: ${Object.keys(defaults).join(", ")}`)
  }
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  const resolved: Required<SokobanOptions> = { ...defaults, ...Object.fromEntries(given) }

  const { size } = resolved
  if (!Array.isArray(size) || size.length !== 2) fail("size", "must be [height, width]")
  for (const side of size) whole("size", side, 3, 50)
  whole("boxes", resolved.boxes, 1, 20)
  whole("searchDepth", resolved.searchDepth, 3, 1000)
  whole("maxSteps", resolved.maxSteps, 1, 10_000)
  whole("history", resolved.history, 0, 1000)
  oneOf("rules", resolved.rules, [true, false])
  oneOf("thinking", resolved.thinking, ["optional", "required", "off"])
  oneOf("heldOut", resolved.heldOut, ["layout", "seed"])
  return resolved
}

function whole(key: string, value: unknown, low: number, high: number): void {
  if (!Number.isInteger(value) || (value as number) < low || (value as number) > high) {
    fail(key, `must be a whole number from ${low} to ${high}, not ${JSON.stringify(value)}`)
  }
}

function oneOf(key: string, value: unknown, allowed: readonly unknown[]): void {
  if (!allowed.includes(value)) {
    fail(key, `must be ${allowed.map((one) => JSON.stringify(one)).join(" or ")}, not ${JSON.stringify(value)}`)
  }
}

function fail(key: string, reason: string): never {
  throw new GigpoError("BAD_CONFIG", `sokoban: ${key} ${reason}.`)
}
