import type { Sequence } from "../rows.ts"
import { cannot } from "./refused.ts"

/** @throws GigpoError `ENGINE_REFUSED` for what no server of the API can learn from. */
export function checkRows(rows: readonly Sequence[], temperature: number): void {
  if (temperature !== 1)
    throw cannot(`learn from what was sampled at temperature ${temperature}`, "set training.rollout.temperature to 1")
  if (rows.some(({ spans }) => spans.some((span) => span.constraint !== undefined)))
    throw cannot("learn from constrained replies", "leave constraints out")
  if (rows.some(({ attachments }) => attachments?.length)) throw cannot("read attachments", "leave them out")
}
