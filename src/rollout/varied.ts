import { isScored } from "./episode.ts"
import type { Group } from "./hooks.ts"

/** Whether at least two scored episodes of a group have different returns. Otherwise their advantages are 0. */
export function isVaried({ episodes }: Group): boolean {
  const returns = episodes.filter(isScored).map((episode) => episode.return)
  return returns.some((value) => value !== returns[0])
}
