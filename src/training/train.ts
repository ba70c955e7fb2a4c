import { gigpoAdvantages } from "../credit/gigpo.ts"
import { grpoAdvantages } from "../credit/grpo.ts"
import type { GigpoDiagnostics, GrpoDiagnostics } from "../credit/types.ts"
import type { LossSpec, Row } from "../engine/engine.ts"
import type { NativePolicy } from "../engine/native/native-policy.ts"
import type { Environment } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import { Random } from "../random.ts"
import type { Episode } from "../rollout/episode.ts"
import { rollout } from "../rollout/rollout.ts"
import type { Tokenizer } from "../tokenizer/tokenizer.ts"
import { checkTrainOptions } from "./check-options.ts"
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
 * Aborting the signal drops the rollout or the evaluation under way, or lets the update under way finish, and throws the
 * signal's reason. However the training ends, the last whole iteration is saved.
 */
export async function* train(setup: TrainSetup): AsyncGenerator<IterationReport, void, undefined> {
  const { policy, tokenizer, run, options } = setup
  const { iterations = 150, checkpointEvery = 25, keepCheckpoints = 2 } = options
  const every = options.evaluation?.every ?? 0
  checkTrainOptions(options)
  tokenizer.checkVocabulary(policy.config.vocabularySize)
  if (usesReference(options)) await policy.freezeReference()
  await run?.restore(policy)

  let completed = run?.iteration ?? 0
  let saved = completed
  let whole = true // the weights are those after `completed` iterations, and all of these are logged
  const save = async () => {
    if (saved !== completed) await run?.saveCheckpoint(completed, policy, tokenizer.files, keepCheckpoints)
    saved = completed
  }
  try {
    if (completed === 0 && every > 0) {
      const report = { iteration: 0, metrics: {}, evaluation: await evaluation(setup) }
      await run?.log(report)
      yield report
    }
    while (completed < iterations) {
      const clock = new Stopwatch()
      const experience = await collect(setup, completed, clock)
      whole = false
      const metrics = await learn(setup, completed, experience, clock)
      completed++
      const last = completed === iterations
      let report: IterationReport = { iteration: completed, metrics }
      try {
        if (every > 0 && (last || completed % every === 0)) report = { ...report, evaluation: await evaluation(setup) }
      } finally {
        // Without an evaluation that was stopped: the weights have moved on all the same.
        await run?.log(report)
        whole = true
      }
      if (last || completed % checkpointEvery === 0) await save()
      yield report
    }
  } finally {
    if (whole) await save()
  }
}

/** What one rollout gave to learn from. */
interface Experience {
  readonly groups: readonly (readonly Episode[])[]
  readonly steps: readonly CollectedStep[]
  readonly rows: readonly Row[]
  readonly diagnostics: GrpoDiagnostics | GigpoDiagnostics
}

/** Samples episodes and gives their steps credit. */
async function collect(setup: TrainSetup, iteration: number, clock: Stopwatch): Promise<Experience> {
  const { policy, tokenizer, environment, options, signal, onProgress } = setup
  const random = iterationRandom(options, iteration)
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
  return { groups, steps, rows, diagnostics }
}

/** Updates the policy and returns the iteration's metrics. Not to be interrupted: an iteration is whole or not at all. */
async function learn(
  setup: TrainSetup,
  iteration: number,
  { groups, steps, rows, diagnostics }: Experience,
  clock: Stopwatch,
): Promise<Record<string, number>> {
  const random = iterationRandom(setup.options, iteration)
  const totals = await update(setup, byTask(rows, steps), random.fork("batches"), iteration)
  clock.lap("update")
  return { ...rolloutMetrics(groups, diagnostics), ...updateMetrics(totals), ...clock.metrics(steps) }
}

function iterationRandom(options: TrainOptions, iteration: number): Random {
  return new Random(options.seed ?? 0).fork("iteration", iteration)
}

function estimate(steps: readonly CollectedStep[], options: TrainOptions) {
  const { name = "gigpo", ...estimator } = options.estimator ?? {}
  if (name === "gigpo") return gigpoAdvantages(steps, estimator)
  const { gamma, omega, similarity, ...episodeLevel } = estimator
  return grpoAdvantages(steps, episodeLevel)
}

function usesReference({ loss }: TrainOptions): boolean {
  return (loss?.klWeight ?? 0) !== 0
}

async function withReference(setup: TrainSetup, rows: readonly Row[]): Promise<readonly Row[]> {
  const { policy, options, signal } = setup
  if (!usesReference(options)) return rows
  const { temperature } = { ...rolloutDefaults, ...options.rollout }
  const reference = await policy.logProbs(rows, "reference", { temperature, ...(signal && { signal }) })
  return rows.map((row, index) => ({ ...row, referenceLogProbs: reference[index]! }))
}

/** Goes through the rows in batches, one optimizer step each. */
async function update(
  setup: TrainSetup,
  groups: readonly (readonly Row[])[],
  random: Random,
  iteration: number,
): Promise<UpdateTotals> {
  const { policy, options, onProgress } = setup
  const { epochs = 1, batchRows = 256, iterations = 150 } = options
  const { temperature } = { ...rolloutDefaults, ...options.rollout }
  const loss: LossSpec = { kind: "policy", skipZeroAdvantage: true, ...options.loss, temperature }
  const adamw = { ...optimizerDefaults, ...options.optimizer }
  const rate = learningRate(iteration, iterations, adamw)
  const totals: UpdateTotals = { losses: [], steps: [], learningRate: rate }
  const plan = Array.from({ length: epochs }, (_, epoch) => batches(groups, batchRows, random.fork(epoch))).flat()
  for (const [index, batch] of plan.entries()) {
    totals.losses.push(await policy.forwardBackward(batch, loss))
    totals.steps.push(await policy.optimizerStep({ ...adamw, learningRate: rate }))
    onProgress?.({ stage: "update", done: index + 1, total: plan.length })
  }
  return totals
}

async function evaluation({ options, ...setup }: TrainSetup): Promise<EvaluationReport> {
  return await evaluate({
    ...setup,
    ...(options.evaluation && { options: options.evaluation }),
    ...(options.rollout && { rollout: options.rollout }),
    seed: options.seed ?? 0,
  })
}

function nothingToLearnFrom(groups: readonly (readonly Episode[])[]): GigpoError {
  const error = groups.flat().find((episode) => episode.error)?.error
  if (error)
    return new GigpoError(
      error.code,
      `No episode of the iteration can be learned from. The first error: ${error.message}`,
      {
        cause: error,
      },
    )
  return new GigpoError(
    "BAD_ENVIRONMENT",
    "No episode made a single step: the first prompt and rollout.maxReplyTokens together do not fit the model. " +
      "Raise maxPositions, lower rollout.maxReplyTokens or shorten the prompt.",
  )
}
