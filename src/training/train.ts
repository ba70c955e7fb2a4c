import { gigpoAdvantages } from "../advantage/gigpo.ts"
import { grpoAdvantages } from "../advantage/grpo.ts"
import type { Environment } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import type { NativePolicy } from "../policy/native-policy.ts"
import type { LossSpec, Row } from "../policy/policy.ts"
import { Random } from "../random.ts"
import type { Episode } from "../rollout/episode.ts"
import { rollout } from "../rollout/rollout.ts"
import type { Tokenizer } from "../tokenizer/tokenizer.ts"
import { optimizerDefaults, rolloutDefaults } from "./defaults.ts"
import { evaluate, takeTasks } from "./evaluate.ts"
import { rolloutMetrics, Stopwatch, type UpdateTotals, updateMetrics } from "./metrics.ts"
import type { EvaluationReport, IterationReport, TrainOptions } from "./options.ts"
import type { Progress } from "./progress.ts"
import { batches, byTask, type CollectedStep, collectSteps, toRows } from "./rows.ts"
import type { Run } from "./run.ts"
import { learningRate } from "./schedule.ts"

export interface TrainSetup {
  readonly policy: NativePolicy
  readonly tokenizer: Tokenizer
  readonly environment: Environment
  readonly options: TrainOptions
  /** Where metrics and checkpoints go; without it nothing is written. */
  readonly run?: Run
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
}

/**
 * Trains the policy: each `next()` is one iteration (rollout of all groups, advantages, updates), durably logged before it
 * is given out. Everything random is keyed by (seed, iteration, task, member, step, token), so a resumed run goes on as if it
 * had never stopped.
 *
 * Aborting the signal drops the rollout under way, or lets the update under way finish; then the last whole iteration is
 * saved and the signal's reason thrown.
 */
export async function* train(setup: TrainSetup): AsyncGenerator<IterationReport, void, undefined> {
  const { policy, tokenizer, run, signal, options } = setup
  const { iterations = 150, checkpointEvery = 25, keepCheckpoints = 2 } = options
  const every = options.evaluation?.every ?? 0
  tokenizer.checkVocabulary(policy.config.vocabularySize)
  if ((options.loss?.klWeight ?? 0) !== 0) await policy.freezeReference()
  await run?.restore(policy)

  let completed = run?.iteration ?? 0
  let saved = completed
  const save = async () => {
    if (saved !== completed) await run?.saveCheckpoint(completed, policy, tokenizer.files, keepCheckpoints)
    saved = completed
  }
  try {
    if (completed === 0 && every > 0)
      yield await logged(run, { iteration: 0, metrics: {}, ...(await evaluation(setup)) })
    while (completed < iterations) {
      const metrics = await iterate(setup, completed)
      completed++
      const last = completed === iterations
      const evaluated = every > 0 && (last || completed % every === 0) ? await evaluation(setup) : {}
      const report = await logged(run, { iteration: completed, metrics, ...evaluated })
      if (last || completed % checkpointEvery === 0) await save()
      yield report
    }
  } catch (error) {
    if (signal?.aborted) await save()
    throw error
  }
}

/** One iteration: sample, give credit, update. Returns its metrics. */
async function iterate(setup: TrainSetup, iteration: number): Promise<Record<string, number>> {
  const { policy, tokenizer, environment, options, signal, onProgress } = setup
  const random = new Random(options.seed ?? 0).fork("iteration", iteration)
  const clock = new Stopwatch()

  const groups = await rollout({
    policy,
    tokenizer,
    environment,
    tasks: takeTasks(environment, "train", random.fork("tasks"), options.groups ?? 16),
    groupSize: options.groupSize ?? 8,
    random: random.fork("rollout"),
    ...rolloutDefaults,
    ...options.rollout,
    maxPositions: policy.maxPositions,
    ...(signal && { signal }),
    onEpisode: (done, total) => onProgress?.({ stage: "rollout", done, total }),
  })
  const steps = collectSteps(groups)
  if (steps.length === 0) throw nothingToLearnFrom(groups)
  clock.lap("rollout")

  const { advantages, diagnostics } = estimate(steps, options)
  clock.lap("advantage")

  const rows = await withReference(setup, toRows(steps, advantages))
  const totals = await update(setup, byTask(rows, steps), random.fork("batches"), iteration)
  clock.lap("update")
  return { ...rolloutMetrics(groups, diagnostics), ...updateMetrics(totals), ...clock.metrics(steps) }
}

function estimate(steps: readonly CollectedStep[], options: TrainOptions) {
  const { name = "gigpo", ...estimator } = options.estimator ?? {}
  if (name === "gigpo") return gigpoAdvantages(steps, estimator)
  const { gamma, omega, similarity, ...episodeLevel } = estimator
  return grpoAdvantages(steps, episodeLevel)
}

async function withReference(setup: TrainSetup, rows: readonly Row[]): Promise<readonly Row[]> {
  if ((setup.options.loss?.klWeight ?? 0) === 0) return rows
  const temperature = setup.options.rollout?.temperature ?? 1
  const reference = await setup.policy.logProbs(rows, "reference", { temperature })
  return rows.map((row, index) => ({ ...row, referenceLogProbs: reference[index]! }))
}

/** Goes through the rows in batches, one optimizer step each. Not to be interrupted: an iteration is whole or not at all. */
async function update(
  setup: TrainSetup,
  groups: readonly (readonly Row[])[],
  random: Random,
  iteration: number,
): Promise<UpdateTotals> {
  const { policy, options, onProgress } = setup
  const { epochs = 1, batchRows = 256, iterations = 150 } = options
  const temperature = options.rollout?.temperature ?? rolloutDefaults.temperature
  const loss: LossSpec = { kind: "policy", skipZeroAdvantage: true, ...options.loss, temperature }
  const { schedule: _, warmup: __, ...adamw } = { ...optimizerDefaults, ...options.optimizer }
  const rate = learningRate(iteration, iterations, { ...optimizerDefaults, ...options.optimizer })
  const totals: UpdateTotals = { losses: [], steps: [], learningRate: rate }
  const plan = Array.from({ length: epochs }, (_, epoch) => batches(groups, batchRows, random.fork(epoch))).flat()
  for (const [index, batch] of plan.entries()) {
    totals.losses.push(await policy.forwardBackward(batch, loss))
    totals.steps.push(await policy.optimizerStep({ ...adamw, learningRate: rate }))
    onProgress?.({ stage: "update", done: index + 1, total: plan.length })
  }
  return totals
}

async function evaluation({ options, ...setup }: TrainSetup): Promise<{ evaluation: EvaluationReport }> {
  const report = await evaluate({
    ...setup,
    ...(options.evaluation && { options: options.evaluation }),
    ...(options.rollout && { rollout: options.rollout }),
    seed: options.seed ?? 0,
  })
  return { evaluation: report }
}

async function logged(run: Run | undefined, report: IterationReport): Promise<IterationReport> {
  await run?.log(report)
  return report
}

function nothingToLearnFrom(groups: readonly (readonly Episode[])[]): GigpoError {
  const error = groups.flat().find((episode) => episode.error)?.error
  return new GigpoError(
    error ? error.code : "BAD_ENVIRONMENT",
    error
      ? `Every episode of the iteration failed; the first: ${error.message}`
      : "No episode made a single step: the first prompt does not fit the model. Raise maxPositions or shorten the prompt.",
    { cause: error },
  )
}
