import { eachSpan } from "../engine/rows.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import type { Learning } from "./prepare.ts"
import type { SequenceTable } from "./sequence-table.ts"

/**
 * Gives tokens that were put into replies and not sampled (`SampledReply.forced`) the log-probabilities of the policy as it is now: then
 * statistics of whole replies (ratios, importance, the mismatch between sampler and trainer) are of the tokens that were sampled.
 */
export async function fillForced(
  { policy, signal, options }: Pick<Learning, "policy" | "signal" | "options">,
  table: SequenceTable,
  moment: TrainingProgress,
): Promise<void> {
  const marksOf = (step: number | undefined) => table.steps[step!]!.record.forced
  if (!table.steps.some(({ record }) => record.forced)) return
  const touched = table.toSequences().filter(({ spans }) => spans.some(({ step }) => marksOf(step)))
  const { logProbs } = await policy.logProbs(touched, {
    temperature: scheduleValue(options.rollout.temperature, moment),
    signal,
  })
  table.columns.logProbs = table.logProbs
  const own = table.byStep(table.columns.logProbs)
  eachSpan(touched, ({ step, length }, start) => {
    const marks = marksOf(step)
    for (let t = 0; t < length; t++) if (marks?.[t] === 1) own[step!]![t] = logProbs[start + t]!
  })
}
