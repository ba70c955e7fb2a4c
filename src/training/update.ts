import type { Sequence } from "../engine/rows.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import { delayAbort } from "../util/linked-abort.ts"
import { planUpdates } from "./batching.ts"
import { updateCritic } from "./critic.ts"
import type { StepGuard } from "./guards/non-finite.ts"
import type { UpdateTotals } from "./metrics.ts"
import { rowMismatch } from "./off-policy.ts"
import { iterationRandom, type Learning, type Training } from "./prepare.ts"
import { adamwAt } from "./schedule.ts"

/** Milliseconds that an update which is to stop has to come to its end. */
const endsWithin = 1000

/**
 * Goes through the rows in batches, one optimizer step each; a critic goes through them first. `onChange` is called whenever the
 * weights are about to change.
 *
 * An iteration is whole or not at all, so an update that has begun ends first. One that takes longer than a second from the abort on
 * is dropped at its next micro-batch, if nothing is lost but itself: the weights have not changed yet, or the run has a checkpoint of
 * what they were.
 */
export async function update(
  training: Learning & Pick<Training, "run">,
  guard: StepGuard,
  rows: readonly Sequence[],
  moment: TrainingProgress,
  onChange?: () => void,
): Promise<UpdateTotals> {
  const { critic, needs, onProgress, options, run } = training
  using late = delayAbort(training.signal, endsWithin)
  let droppable = true
  const stop = () => {
    if (droppable) late.signal.throwIfAborted()
    return droppable ? late.signal : undefined
  }
  const change = () => {
    droppable = run?.iteration === moment.iteration
    onChange?.()
  }
  const random = iterationRandom(training, moment.iteration)
  const place = { index: moment.iteration, total: moment.iterations, perIteration: 1 }
  const step = adamwAt(options.optimizer, place)
  const temperature = scheduleValue(options.rollout.temperature, moment)
  const totals: UpdateTotals = { losses: [], steps: [], learningRate: step.learningRate }
  if (critic) {
    change()
    totals.critic = await updateCritic(critic, rows, options.critic, moment, random.fork("critic"), stop)
    if (moment.iteration < options.critic.warmupIterations) return totals
  }
  const plan = planUpdates(rows, options, random.fork("batches"))
  for (const [index, batch] of plan.entries()) {
    const how = { moment, random: random.fork("loss", index), temperature, unit: options.unit, signal: stop() }
    const { report, step: taken } = await guard.step(batch, how, step, change)
    // Nothing had changed since the rollout: any difference is between the sampler's numbers and the trainer's. Where these were
    // recomputed it was told of all rows.
    if (index === 0 && report && !needs.has("old")) totals.mismatch = rowMismatch(batch, report.logProbs)
    if (report) totals.losses.push(report)
    totals.steps.push(taken)
    onProgress?.({ stage: "update", done: index + 1, total: plan.length })
  }
  return totals
}
