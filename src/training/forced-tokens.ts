import { at, type Moment } from "../options/schedule.ts"
import type { Learning } from "./prepare.ts"
import type { CollectedStep, LaidRow } from "./rows.ts"

/**
 * Tokens that were put into replies and not sampled (`SampledReply.forced`) have the log-probabilities that the policy gives them now: then
 * what is told of whole replies (ratios, importance, the mismatch between sampler and trainer) is of the tokens that were sampled.
 */
export async function fillForced(
  { policy, signal, options }: Pick<Learning, "policy" | "signal" | "options">,
  rows: readonly LaidRow[],
  steps: readonly CollectedStep[],
  moment: Moment,
): Promise<void> {
  const marksOf = (step: number) => steps[step]!.record.forced
  const touched = rows.filter(({ spans }) => spans.some(({ step }) => marksOf(step)))
  if (touched.length === 0) return
  const found = await policy.logProbs(touched, { temperature: at(options.rollout.temperature, moment), signal })
  for (const [row, { spans }] of touched.entries()) {
    let start = 0
    for (const span of spans) {
      const [marks, from] = [marksOf(span.step), start]
      if (marks)
        span.logProbs = span.logProbs!.map((own, t) => (marks[t] === 1 ? found[row]!.logProbs[from + t]! : own))
      start += span.length
    }
  }
}
