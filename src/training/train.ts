import { setImmediate } from "node:timers/promises"
import type { Row } from "../engine/rows.ts"
import { at, type Moment } from "../options/schedule.ts"
import { checkCriticSteps } from "./critic.ts"
import { evaluate } from "./evaluate.ts"
import { collect } from "./experience.ts"
import { CollapseDetector, collapsed } from "./guards/collapse.ts"
import { checkGradient, checkLogProbs, checkValues, StepGuard, withLastCheckpoint } from "./guards/non-finite.ts"
import { isNonFinite } from "./guards/step.ts"
import { adaptKl } from "./kl.ts"
import { remember } from "./memory.ts"
import { rolloutMetrics, Stopwatch, updateMetrics } from "./metrics.ts"
import { Observers } from "./observers.ts"
import type { EvaluationReport, IterationReport } from "./options.ts"
import { prepare, type Training, type TrainSetup } from "./prepare.ts"
import { Reports } from "./reports.ts"
import { update } from "./update.ts"

/**
 * Trains the policy: each report is one iteration (rollout of all groups, credit, updates), durably logged before it is given out.
 * Everything random is keyed by (seed, iteration, task, member, step, token), so a resumed run goes on as if it had never
 * stopped. Iterate it to see each report as it comes, or await it for all of them.
 *
 * Everything that can be checked is checked before the run's folder is touched. Aborting the signal drops the rollout or the
 * evaluation under way, or lets the update under way finish, and throws the signal's reason. However the training ends, the
 * last whole iteration is saved.
 */
export function train<Task>(setup: TrainSetup<Task>): Reports<IterationReport> {
  return new Reports(() => iterate(setup))
}

async function* iterate<Task>(all: TrainSetup<Task>): AsyncGenerator<IterationReport, void, undefined> {
  const prepared = await prepare(all)
  const { policy, options, needs, run, saved: toSave, onWarning } = prepared
  const {
    iterations,
    checkpointEvery,
    keepCheckpoints,
    evaluation: { every },
  } = options
  if (needs.has("reference")) await policy.reference!.freeze()
  await run?.begin()
  if (toSave) await run?.restore(toSave)
  // One that no checkpoint holds begins as the policy that was restored.
  const critic = needs.has("value") ? await policy.critic!() : undefined
  const training = { ...prepared, critic }
  if (run) await toSave?.critic?.() // refuses one that cannot be saved
  if (run && run.iteration > 0 && !policy.deterministic)
    onWarning("This engine does not draw by keys: the run goes on, but not as it would have without the stop.")

  const observers = new Observers(training.observers ?? [], onWarning)
  let completed = run?.iteration ?? 0
  let saved = run?.saved === false && completed > 0 ? -1 : completed // a fork has its state elsewhere yet
  let whole = true // the weights are those after `completed` iterations, and all of these are logged
  let memory = remember(training.parts) // of the same moment as the weights; parts are ahead of it while they work
  let due = false // a checkpoint; one that was due while the weights were in doubt is written later
  let learned: readonly Row[] = [] // by the last iteration
  let failure: unknown
  const steps = new StepGuard(training, onWarning)
  const check = async (what: typeof checkLogProbs) =>
    await what(policy, learned, at(options.rollout.temperature, { iteration: completed, iterations }))
  const save = async () => {
    if (saved !== completed && toSave && run) {
      await check(checkLogProbs)
      if (critic) await checkValues(critic, learned)
      await run.saveCheckpoint(completed, { ...toSave, memory }, keepCheckpoints, steps.good)
    }
    saved = completed
  }
  /** Saves the last whole iteration. Where its weights have diverged the run ends with that, if with nothing else. */
  const finish = async () => {
    const over = failure === undefined ? completed === iterations : isNonFinite(failure)
    let diverged: Error | undefined
    try {
      if (isNonFinite(failure)) await check(checkLogProbs)
      if (whole) await save()
      if (run && over && steps.inDoubt) await check(checkGradient)
    } catch (error) {
      if (!isNonFinite(error)) throw error
      diverged = error
    }
    if (diverged && failure !== undefined && !isNonFinite(failure)) onWarning(diverged.message)
    failure ??= diverged
    if (!isNonFinite(failure)) return
    failure = await withLastCheckpoint(failure, run, diverged ? steps.good : run?.checkpoint)
    throw failure
  }
  const collapse = new CollapseDetector(options.guards)
  const place = run && { directory: run.directory, config: run.config }
  observers.tell("start", { iteration: completed, iterations, ...place })
  try {
    if (completed === 0 && every > 0) {
      const report = { iteration: 0, metrics: {}, evaluation: await evaluation(training) }
      await run?.log(report)
      observers.tell("report", report)
      yield report
    }
    while (completed < iterations) {
      await setImmediate() // an engine that never waits must not keep observers and signals from their turn
      const clock = new Stopwatch()
      const moment: Moment = { iteration: completed, iterations }
      const experience = await collect(training, moment, clock)
      const { groups, dropped, rows, credit } = experience
      const played = rolloutMetrics(groups, credit, dropped, options.rollout.leastGroupSize)
      const totals = await update(training, steps, rows, moment, () => {
        whole = false
      })
      if (totals.critic) checkCriticSteps(totals.critic, options.guards.nonFinite, completed + 1, onWarning)
      clock.lap("update")
      // What estimators and losses name comes first, so that it hides none of the others.
      const updated = { ...credit.metrics, ...experience.metrics, ...updateMetrics(totals) }
      const adapted = adaptKl(training.kl, updated, experience.steps.length)
      const watched = collapse.look([...groups, ...dropped], updated)
      const metrics = { ...updated, ...adapted, ...watched.metrics, ...played, ...clock.metrics(experience.steps) }
      learned = rows
      memory = remember(training.parts)
      completed++
      const last = completed === iterations
      let report: IterationReport = { iteration: completed, metrics }
      try {
        if (every > 0 && (last || completed % every === 0))
          report = { ...report, evaluation: await evaluation(training) }
      } finally {
        // Without an evaluation that was stopped: the weights have moved on all the same.
        await run?.log(report)
        whole = true
        observers.tell("episodes", completed, groups, credit)
        observers.tell("report", report)
      }
      due ||= completed % checkpointEvery === 0
      if (last || (due && !steps.inDoubt)) {
        await save()
        due = false
      }
      const stops = options.guards.collapse === "stop" && !last && watched.alarms.length > 0
      if (!stops) for (const alarm of watched.alarms) onWarning(alarm)
      yield report
      if (stops) throw collapsed(watched.alarms, completed)
    }
  } catch (error) {
    failure = error
    throw error
  } finally {
    try {
      await finish()
    } finally {
      observers.tell("end", { iteration: completed, ...(failure !== undefined && { error: failure }) })
      await observers.settle()
    }
  }
}

async function evaluation<Task>(training: Training<Task>): Promise<EvaluationReport> {
  const { policy, tokenizer, environment, play, signal, onProgress } = training
  const {
    seed,
    rollout,
    evaluation: { tasks, temperature },
  } = training.options
  const setup = { policy, tokenizer, environment: environment!, play, signal, onProgress }
  return await evaluate({ ...setup, tasks, temperature, seed, rollout })
}
