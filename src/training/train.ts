import { setImmediate } from "node:timers/promises"
import { exclusively } from "../engine/claims.ts"
import type { Trainable } from "../engine/engine.ts"
import { checkArguments } from "../options/arguments.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { EvaluationReport, IterationReport } from "../runs/report.ts"
import { nameOf } from "../runs/run.ts"
import { saveOnSignal } from "../runs/save-on-signal.ts"
import { evaluate } from "./evaluate.ts"
import { CollapseDetector, collapsed } from "./guards/collapse.ts"
import { StepGuard } from "./guards/non-finite.ts"
import { runIteration } from "./iteration.ts"
import { Journal } from "./journal.ts"
import { needsReference } from "./make.ts"
import { Observers } from "./observers.ts"
import { playerOf } from "./player.ts"
import { prepare, type Training, type TrainSetup } from "./prepare.ts"
import { Reports } from "./reports.ts"
import { Saver } from "./saver.ts"

/**
 * Trains the policy: each report is one iteration (rollout of all groups, credit, updates), durably logged before it is given out.
 * Everything random is keyed by (seed, iteration, task, member, step, token), so a resumed run goes on as if it had never
 * stopped. Iterate it to see each report as it comes, or await it for all of them.
 *
 * Everything that can be checked is checked before the run's folder is touched. Aborting the signal drops the rollout or the
 * evaluation under way, or lets the update under way finish (one that takes long is dropped where a checkpoint has what it began
 * from), and throws the signal's reason. However the training ends, the
 * last whole iteration is saved. A run that is resumed where an evaluation was dropped makes up for it first: the iteration's line
 * is replaced by the whole one, which is the first report.
 *
 * With a run, Ctrl-C, SIGTERM and SIGHUP save it like an abort and then end the process with 130, 143 or 129, unless the program
 * listens to the signal itself or `handleSignals` is false.
 *
 * The policy belongs to this training until it has ended, failed or been aborted. Another `train` or `clone` of the same policy is
 * refused (`POLICY_BUSY`), as is an evaluation while an iteration is computed; between two reports it may be evaluated.
 */
export function train<Task>(setup: TrainSetup<Task>): Reports<IterationReport> {
  return new Reports(() => {
    checkArguments("train", setup)
    const work = (policy: Trainable) => saveOnSignal(setup, (signal) => iterate({ ...setup, policy, signal }))
    return exclusively(setup.policy, nameOf("train", setup), work, setup)
  })
}

async function* iterate<Task>(all: TrainSetup<Task>): AsyncGenerator<IterationReport, void, undefined> {
  const { agent: _, normalize: __, handleSignals: ___, ...rest } = all
  await using player = playerOf(all)
  const prepared = await prepare({ ...rest, environment: player.environment, play: player.play })
  const { policy, options, needs, run, saved, onWarning } = prepared
  const { iterations } = options
  if (needsReference(needs)) await policy.reference!.freeze()
  await run?.begin()
  if (saved) await run?.restore(saved)
  // One that no checkpoint holds begins as the policy that was restored.
  const critic = needs.has("value") ? await policy.critic!() : undefined
  const training = { ...prepared, critic }
  if (run) await saved?.critic?.() // refuses one that cannot be saved
  if (run && run.iteration > 0 && !policy.deterministic)
    onWarning("This engine does not draw by keys: the run goes on, but not as it would have without the stop.")

  const journal = await Journal.open(training)
  const steps = new StepGuard(training, onWarning)
  const collapse = new CollapseDetector(options.guards)
  for (const before of journal.reports) collapse.recall(before)
  const saver = new Saver(training, steps)
  const observers = new Observers(training.observers ?? [], onWarning)
  const place = run && { directory: run.directory, config: run.config }
  observers.tell("start", { iteration: saver.completed, iterations, ...place })
  const evaluated = async (draft: IterationReport): Promise<IterationReport> =>
    journal.lacksEvaluation(draft) ? journal.stamp({ ...draft, evaluation: await evaluation(training) }) : draft
  let report = journal.at(saver.completed)
  try {
    if (journal.lacksEvaluation(report)) {
      report = await evaluated(report)
      const warnings = collapse.evaluated(report.evaluation)
      for (const warning of warnings) onWarning(warning)
      report = await journal.log(withWarnings(report, warnings))
      observers.tell("report", report)
      await saver.keep(report, journal.isLast(report))
      yield report
    } else if (journal.stopped(report)) onWarning(`The run is over: ${journal.stopped(report)}. Raise that to go on.`)
    while (!journal.isLast(report)) {
      await setImmediate() // an engine that never waits must not keep observers and signals from their turn
      const moment: TrainingProgress = { iteration: saver.completed, iterations }
      const done = await runIteration(training, { steps, collapse }, moment, saver.changing)
      saver.complete(done.rows)
      report = journal.stamp(done.report)
      let { alarms } = done
      try {
        report = await evaluated(report)
        alarms = [...alarms, ...collapse.evaluated(report.evaluation)]
      } finally {
        // Without an evaluation that was stopped: the weights have moved on all the same. A resumed run makes up for it.
        report = await journal.log(withWarnings(report, alarms))
        saver.logged()
        observers.tell("episodes", saver.completed, done.groups, done.credit, done.steps)
        observers.tell("report", report)
      }
      const last = journal.isLast(report)
      await saver.keep(report, last)
      const stops = options.guards.collapse === "stop" && !last && alarms.length > 0
      if (!stops) for (const alarm of alarms) onWarning(alarm)
      yield report
      if (stops) throw collapsed(alarms, saver.completed)
    }
  } catch (error) {
    saver.failure = error
    throw error
  } finally {
    try {
      await saver.finish(journal.isLast(report))
    } finally {
      const { completed, failure } = saver
      observers.tell("end", { iteration: completed, ...(failure !== undefined && { error: failure }) })
      await observers.settle()
    }
  }
}

function withWarnings(report: IterationReport, warnings: readonly string[]): IterationReport {
  return warnings.length === 0 ? report : { ...report, warnings }
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
