import type { Trainable } from "../engine/engine.ts"

/** Maximum number of tokens of a sequence that a policy samples and learns from. `longestRow` is 0 for an engine that only samples. */
export function longestSequence({ maxPositions, longestRow }: Pick<Trainable, "maxPositions" | "longestRow">): number {
  return Math.min(maxPositions, longestRow || maxPositions)
}
