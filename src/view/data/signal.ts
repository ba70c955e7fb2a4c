import { advantageOf } from "./earned.ts"
import type { RecordedGroup } from "./recorded.ts"

/**
 * Reason why a group gives little or no signal, as a sentence; undefined for a group whose returns differ, and for one without scored
 * episodes to compare.
 */
export function missingSignal({ episodes }: RecordedGroup): string | undefined {
  const scored = episodes.filter(({ outcome }) => outcome !== "failed" && outcome !== "excluded")
  const [first] = scored
  if (!first || scored.length < 2 || scored.some((episode) => episode.return !== first.return)) return undefined
  const isLearned = scored.some(({ steps }) => steps.some((step) => (advantageOf(step) ?? 0) !== 0))
  const same = `All ${scored.length} scored episodes of this group have the return ${Number(first.return.toPrecision(3))}`
  return isLearned
    ? `${same}, so they have no episode advantage: only differences between states have an effect.`
    : `${same}, so all advantages are 0: this group has no gradient.`
}
