import { isScored } from "./episode.ts"
import type { Group } from "./hooks.ts"

/** Whether two episodes that can be learned from have different returns: a group without teaches nothing by comparison. */
export function isVaried({ episodes }: Group): boolean {
  const returns = episodes.filter(isScored).map((episode) => episode.return)
  return returns.some((value) => value !== returns[0])
}
