import type { AdamWStep, Critic, Trainable } from "../../engine/engine.ts"
import { type Sequence, sampledTokens } from "../../engine/rows.ts"
import type { Checkpoint } from "../../runs/checkpoint.ts"
import type { Run } from "../../runs/run.ts"
import type { AccumulateOptions } from "../accumulate.ts"
import { predictValues } from "../critic.ts"
import type { Training } from "../prepare.ts"
import { writeFailure } from "./failure.ts"
import { nonFinite, type StepOutcome, takeStep } from "./step.ts"

// What is not finite is neither learned from nor saved.

type Guarded = Pick<Training, "policy" | "loss" | "options" | "run">

/** Takes a run's optimizer steps, and stops it after too many in a row that had to be skipped. */
export class StepGuard {
  readonly #training: Guarded
  readonly #onWarning: (message: string) => void
  #inRow = 0
  #good: Checkpoint | undefined

  /** For a run that is restored. */
  constructor(training: Guarded, onWarning: (message: string) => void) {
    this.#good = training.run?.checkpoint
    this.#training = training
    this.#onWarning = onWarning
  }

  /** Whether the last step had to be skipped: the weights from before it may have diverged. */
  get inDoubt(): boolean {
    return this.#inRow > 0
  }

  /** The newest checkpoint from which a step with a finite gradient was taken, or which the run began with. */
  get good(): Checkpoint | undefined {
    return this.#good
  }

  /** @throws GigpoError `NON_FINITE` at the last of `guards.nonFinite` skipped steps in a row, once the batch that it was is written. */
  async step(
    rows: readonly Sequence[],
    how: AccumulateOptions,
    adamw: AdamWStep,
    onChange?: () => void,
  ): Promise<StepOutcome> {
    const { policy, loss, options, run } = this.#training
    const outcome = await takeStep(policy, rows, loss, how, adamw, onChange)
    const { error } = outcome
    this.#inRow = error ? this.#inRow + 1 : 0
    if (!error) {
      this.#good = run?.checkpoint
      return outcome
    }
    const { nonFinite: most } = options.guards
    const place = `of iteration ${how.moment.iteration + 1}`
    if (this.#inRow < most) {
      this.#onWarning(
        `An optimizer step ${place} was skipped. ${error.message} It is ${this.#inRow} in a row; the run stops at ${most} ` +
          "(guards.nonFinite).",
      )
      return outcome
    }
    throw nonFinite(
      `${most} optimizer steps in a row had to be skipped, the last one ${place} (guards.nonFinite). ${error.message} ` +
        `${await this.#keep(rows, how, adamw, error)}Lower optimizer.learningRate, or look at the loss and the advantages.`,
      error,
    )
  }

  async #keep(rows: readonly Sequence[], how: AccumulateOptions, adamw: AdamWStep, error: Error): Promise<string> {
    const { run, policy, loss, options } = this.#training
    if (!run) return ""
    try {
      const path = await writeFailure(run.directory, { policy, loss, options, rows, how, adamw, error })
      return `The batch is in ${path}, where replayFailure() finds it. `
    } catch (cause) {
      this.#onWarning(`The batch that failed could not be written: ${cause instanceof Error ? cause.message : cause}`)
      return ""
    }
  }
}

/** Rows by which weights are judged, the shortest ones. */
const probes = 4

function shortest(rows: readonly Sequence[]): Sequence[] {
  return rows.toSorted((a, b) => a.tokens.length - b.tokens.length).slice(0, probes)
}

/**
 * Weights may be finite and give no finite log-probabilities: such ones must not be saved, since checkpoints before them go.
 *
 * @param rows of the last iteration; without any, nothing has been learned
 * @throws GigpoError `NON_FINITE`
 */
export async function checkLogProbs(policy: Trainable, rows: readonly Sequence[], temperature: number): Promise<void> {
  if (rows.length === 0) return
  const found = await policy.logProbs(shortest(rows), { temperature })
  if (found.logProbs.every(Number.isFinite)) return
  throw nonFinite("The policy's log-probabilities are not finite: its weights have diverged.")
}

/** The same of a critic's values. */
export async function checkValues(critic: Critic, rows: readonly Sequence[]): Promise<void> {
  if (rows.length > 0) await predictValues(critic, shortest(rows))
}

/**
 * Weights far too large may give fine log-probabilities and no finite gradient of them, which is not the fault of the loss. It takes
 * an optimizer step to know, of a learning rate of 0: weights stay as they are, moments do not, so it is for runs that are over.
 *
 * @throws GigpoError `NON_FINITE`
 */
export async function checkGradient(policy: Trainable, rows: readonly Sequence[], temperature: number): Promise<void> {
  if (rows.length === 0) return
  const short = shortest(rows)
  const tokens = sampledTokens(short)
  const coefficients = new Float32Array(tokens).fill(-1 / tokens)
  await policy.forwardBackward(short, { kind: "linear", coefficients, temperature })
  const { skipped } = await policy.optimizerStep({ learningRate: 0 })
  if (!skipped) return
  throw nonFinite("The gradient of the policy's log-probabilities is not finite: its weights have diverged.")
}

/**
 * What a run ends with whose numbers are not finite: the error, with the checkpoint to go on from.
 *
 * @param good the newest checkpoint that has not diverged; those after it are set aside
 */
export async function withLastCheckpoint(error: Error, run: Run | undefined, good?: Checkpoint): Promise<Error> {
  if (!run) return error
  const last = run.checkpoint
  if (last !== good) await run.goBackTo(good)
  const aside =
    last === good ? "" : ` What was saved after iteration ${last!.iteration} is now suspect-${last!.iteration}.`
  const place = good
    ? `The last good checkpoint is ${good.directory}, after iteration ${good.iteration}.`
    : "There is no checkpoint to go back to: begin again from the model."
  return nonFinite(`${error.message} ${place}${aside}`, error)
}
