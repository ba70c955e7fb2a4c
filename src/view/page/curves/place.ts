import { formatDuration } from "../../../util/format.ts"
import type { Along } from "../../data/curves.ts"

/** Label of a place at a tick of the x-axis. */
export function placeTick(along: Along, at: number): string {
  return along === "time" ? formatDuration(at).replace(/ 0 (min|h)$/, "") : String(at)
}

/** Description of a place: "iteration 12", "after 3 h 10 min". */
export function placeInWords(along: Along, at: number): string {
  return along === "time" ? `after ${formatDuration(at)}` : `iteration ${at}`
}
