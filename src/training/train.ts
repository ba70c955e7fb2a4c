import { exclusively } from "../engine/claims.ts"
import type { Trainable } from "../engine/engine.ts"
import { checkArguments } from "../options/arguments.ts"
import type { IterationReport } from "../runs/report.ts"
import { nameOf } from "../runs/run.ts"
import { saveOnSignal } from "../runs/save-on-signal.ts"
import type { TrainSetup } from "./prepare.ts"
import { ReportStream } from "./reports.ts"

// The loop is loaded when a training run starts, so that importing the package does not load every estimator and loss.

/**
 * Trains a policy by reinforcement learning.
 *
 * Each report is one iteration: rollout of all groups, advantages and updates. A report is on disk before it is returned. Iterate with
 * `for await` to receive each report when it is available, or `await` all reports. Random numbers are keyed by (seed, iteration, task,
 * member, step, token), so that a resumed run continues as without the interruption.
 *
 * All arguments are checked before the folder of the run is changed. An abort of `signal` drops the current rollout or evaluation. The current
 * update is completed, or dropped if it takes long and a checkpoint has the weights before it. Then the reason of the signal is thrown. The
 * last completed iteration is saved however the training ends. A resumed run repeats a dropped evaluation first: the line of the iteration in
 * the log is replaced by one with the evaluation, which is the first report.
 *
 * With a run, Ctrl-C, SIGTERM and SIGHUP save the run like an abort and then end the process with 130, 143 or 129, unless the program
 * has its own listener for the signal or `handleSignals` is false.
 *
 * The training has exclusive use of the policy until it ends, fails or is aborted. Another `train` or `sft` of the policy is rejected
 * (`POLICY_BUSY`), as is an evaluation while an iteration is computed. Evaluations between two reports are allowed.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option or combination, `COLLAPSED` if a guard ends the run, `NON_FINITE` for weights or
 * losses that are not finite, and errors of the environment, the engine and the run.
 */
export function train<Task>(setup: TrainSetup<Task>): ReportStream<IterationReport> {
  return new ReportStream(() => {
    checkArguments("train", setup)
    const work = (policy: Trainable) =>
      saveOnSignal(setup, async function* (signal) {
        const { iterate } = await import("./iterations.ts")
        yield* iterate({ ...setup, policy, signal })
      })
    return exclusively(setup.policy, nameOf("train", setup), work, setup)
  })
}
