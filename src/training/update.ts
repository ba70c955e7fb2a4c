import type { Row } from "../engine/rows.ts"
import { at, type Moment } from "../options/schedule.ts"
import { accumulate } from "./accumulate.ts"
import type { UpdateTotals } from "./metrics.ts"
import { iterationRandom, type Learning } from "./prepare.ts"
import { batches, byTask } from "./rows.ts"
import { adamwAt } from "./schedule.ts"

/**
 * Goes through the rows in batches, one optimizer step each. Not to be interrupted: an iteration is whole or not at all.
 * `onChange` is called before the weights change for the first time.
 */
export async function update(
  training: Learning,
  rows: readonly Row[],
  moment: Moment,
  onChange?: () => void,
): Promise<UpdateTotals> {
  const { policy, onProgress, options, loss } = training
  const { epochs, batchRows, unit } = options
  const random = iterationRandom(training, moment.iteration)
  const order = random.fork("batches")
  const count = unit === "row" ? () => 1 : undefined
  const groups = byTask(rows)
  const place = { index: moment.iteration, total: moment.iterations, perIteration: 1 }
  const step = adamwAt(options.optimizer, place)
  const temperature = at(options.rollout.temperature, moment)
  const totals: UpdateTotals = { losses: [], steps: [], learningRate: step.learningRate }
  const plan = Array.from({ length: epochs }, (_, epoch) => batches(groups, batchRows, order.fork(epoch), count)).flat()
  for (const [index, batch] of plan.entries()) {
    const draws = random.fork("loss", index)
    totals.losses.push(await accumulate(policy, batch, loss, { moment, random: draws, temperature, unit }))
    if (index === 0) onChange?.()
    totals.steps.push(await policy.optimizerStep(step))
    onProgress?.({ stage: "update", done: index + 1, total: plan.length })
  }
  return totals
}
