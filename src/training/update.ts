import type { Replay } from "../credit/estimator.ts"
import type { LossReport } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import { delayAbort } from "../util/linked-abort.ts"
import { Pace } from "../util/pace.ts"
import { planUpdates } from "./batching.ts"
import { updateCritic } from "./critic.ts"
import type { StepGuard } from "./guards/non-finite.ts"
import type { UpdateTotals } from "./metrics.ts"
import { rowMismatch } from "./off-policy.ts"
import { iterationRandom, type Learning, type Training } from "./prepare.ts"
import { adamwAt } from "./schedule.ts"

/** Milliseconds that a running update has to complete after an abort. */
const endsWithin = 1000

/**
 * Updates the policy on the sequences of an iteration, one optimizer step per batch. A critic is updated first. Replayed sequences follow
 * in each epoch, with a loss of their own. `onChange` is called before
 * each change of the weights.
 *
 * An iteration is completed or dropped as a whole, so the updates continue after an abort. Updates that take longer than a second from the
 * abort on are dropped at the next micro-batch, provided that the weights have not changed yet or the run has a checkpoint of the weights
 * before the iteration.
 */
export async function update(
  training: Learning & Pick<Training, "run">,
  guard: StepGuard,
  rows: readonly Sequence[],
  progress: TrainingProgress,
  onChange?: () => void,
  replay?: Replay,
): Promise<UpdateTotals> {
  const { critic, needs, onProgress, options, run } = training
  using late = delayAbort(training.signal, endsWithin)
  let droppable = true
  const stop = () => {
    if (droppable) late.signal.throwIfAborted()
    return droppable ? late.signal : undefined
  }
  const change = () => {
    droppable = run?.iteration === progress.iteration
    onChange?.()
  }
  const random = iterationRandom(training, progress.iteration)
  const place = { index: progress.iteration, total: progress.iterations, perIteration: 1 }
  const step = adamwAt(options.optimizer, place)
  const temperature = scheduleValue(options.rollout.temperature, progress)
  const again: LossReport[] = []
  const totals: UpdateTotals = { losses: [], replayed: again, steps: [], learningRate: step.learningRate }
  if (critic) {
    change()
    totals.critic = await updateCritic(critic, rows, options.critic, progress, random.derive("critic"), stop)
    if (progress.iteration < options.critic.warmupIterations) return totals
  }
  const pace = new Pace()
  const plan = await pace.through(planUpdates(rows, options, random.derive("batches"), replay?.sequences))
  const replays = new Set(replay?.sequences)
  for (const [index, batch] of plan.entries()) {
    const how = { progress, random: random.derive("loss", index), temperature, unit: options.unit, signal: stop() }
    const replayed = replays.has(batch[0]!)
    const { report, step: taken } = await guard.step(batch, how, step, change, replayed ? replay!.loss : undefined)
    // At the first batch the weights are those of the rollout: any difference is the mismatch of sampler and trainer. With recomputed
    // log-probabilities the mismatch has been reported for all sequences.
    if (index === 0 && report && !replayed && !needs.has("old"))
      totals.mismatch = await rowMismatch(batch, report.logProbs, pace)
    if (report) (replayed ? again : totals.losses).push(report)
    totals.steps.push(taken)
    onProgress?.({ stage: "update", done: index + 1, total: plan.length })
  }
  return totals
}
