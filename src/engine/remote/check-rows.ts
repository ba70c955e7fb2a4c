import type { Sequence } from "../sequence.ts"
import { cannot } from "./refused.ts"

/** @throws GigpoError `ENGINE_REJECTED` for sequences that servers of the API cannot learn from. */
export function checkRows(rows: readonly Sequence[], temperature: number): void {
  if (temperature !== 1)
    throw cannot(
      `learn from completions sampled at temperature ${temperature}`,
      "set training.rollout.temperature to 1",
    )
  if (rows.some(({ segments }) => segments.some((segment) => segment.constraint !== undefined)))
    throw cannot("learn from constrained completions", "remove the constraints")
  if (rows.some(({ attachments }) => attachments?.length)) throw cannot("read attachments", "remove them")
}
