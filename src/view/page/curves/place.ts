import { formatDuration } from "../../../util/format.ts"
import type { Along } from "../../data/curves.ts"

/** A place along the bottom, at a tick. */
export function placeTick(along: Along, at: number): string {
  return along === "time" ? formatDuration(at).replace(/ 0 (min|h)$/, "") : String(at)
}

/** "iteration 12", "after 3 h 10 min" */
export function placeInWords(along: Along, at: number): string {
  return along === "time" ? `after ${formatDuration(at)}` : `iteration ${at}`
}
