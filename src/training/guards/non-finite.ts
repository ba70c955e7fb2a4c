import type { AdamWParameters, Critic, Trainable } from "../../engine/engine.ts"
import { type Sequence, sampledTokens } from "../../engine/sequence.ts"
import type { TokenLoss } from "../../loss/token-loss.ts"
import type { Checkpoint } from "../../runs/checkpoint.ts"
import type { Run } from "../../runs/run.ts"
import type { AccumulateOptions } from "../accumulate.ts"
import { predictValues } from "../critic.ts"
import type { Training } from "../prepare.ts"
import { writeFailure } from "./failure.ts"
import { nonFinite, takeStep, type UpdateResult } from "./step.ts"

// Guards against numbers that are not finite: such updates are skipped, and such weights are not saved.

type Guarded = Pick<Training, "policy" | "loss" | "options" | "run">

/** Takes the optimizer steps of a run. Ends the run after too many skipped steps in a row. */
export class StepGuard {
  readonly #training: Guarded
  readonly #onWarning: (message: string) => void
  #inRow = 0
  #good: Checkpoint | undefined

  /** Creates a guard for a run whose state is restored. */
  constructor(training: Guarded, onWarning: (message: string) => void) {
    this.#good = training.run?.checkpoint
    this.#training = training
    this.#onWarning = onWarning
  }

  /** Whether the last step was skipped. The weights before the step may have diverged. */
  get inDoubt(): boolean {
    return this.#inRow > 0
  }

  /** Newest checkpoint after which a step with a finite gradient was taken, or the checkpoint that the run started from. */
  get good(): Checkpoint | undefined {
    return this.#good
  }

  /**
   * Takes an optimizer step.
   *
   * @param other - loss of the step. Default: the loss of the training.
   * @throws GigpoError `NON_FINITE` after `guards.maxNonFinite` skipped steps in a row. The last batch is saved first.
   */
  async step(
    rows: readonly Sequence[],
    how: AccumulateOptions,
    adamw: AdamWParameters,
    onChange?: () => void,
    other?: TokenLoss,
  ): Promise<UpdateResult> {
    const { policy, options, run } = this.#training
    const loss = other ?? this.#training.loss
    const outcome = await takeStep(policy, rows, loss, how, adamw, onChange)
    const { error } = outcome
    this.#inRow = error ? this.#inRow + 1 : 0
    if (!error) {
      this.#good = run?.checkpoint
      return outcome
    }
    const { maxNonFinite: most } = options.guards
    const place = `of iteration ${how.progress.iteration + 1}`
    if (this.#inRow < most) {
      this.#onWarning(
        `An optimizer step ${place} was skipped. ${error.message} It is number ${this.#inRow} in a row; the run stops at ${most} ` +
          "(guards.maxNonFinite).",
      )
      return outcome
    }
    throw nonFinite(
      `${most} optimizer steps in a row were skipped, the last one ${place} (guards.maxNonFinite). ${error.message} ` +
        `${await this.#keep(rows, how, adamw, error, loss)}Lower optimizer.learningRate, or check the loss and the advantages.`,
      error,
    )
  }

  async #keep(
    rows: readonly Sequence[],
    how: AccumulateOptions,
    adamw: AdamWParameters,
    error: Error,
    loss: TokenLoss,
  ): Promise<string> {
    const { run, policy, options } = this.#training
    if (!run) return ""
    try {
      const path = await writeFailure(run.directory, { policy, loss, options, rows, how, adamw, error })
      return `The batch was saved to ${path} for replayFailure(). `
    } catch (cause) {
      this.#onWarning(`Could not save the failed batch: ${cause instanceof Error ? cause.message : cause}`)
      return ""
    }
  }
}

/** Number of sequences that weights are checked with, the shortest ones. */
const probes = 4

function shortest(rows: readonly Sequence[]): Sequence[] {
  return rows.toSorted((a, b) => a.tokens.length - b.tokens.length).slice(0, probes)
}

/**
 * Checks that the log-probabilities of a policy are finite, which finite weights do not guarantee. Weights that fail must not be saved,
 * since older checkpoints are deleted.
 *
 * @param rows - sequences of the last iteration. Without any, nothing has been trained and nothing is checked.
 * @throws GigpoError `NON_FINITE` for log-probabilities that are not finite.
 */
export async function checkLogProbs(policy: Trainable, rows: readonly Sequence[], temperature: number): Promise<void> {
  if (rows.length === 0) return
  const found = await policy.logProbs(shortest(rows), { temperature })
  if (found.logProbs.every(Number.isFinite)) return
  throw nonFinite("The policy's log-probabilities are not finite: its weights have diverged.")
}

/** Checks that the values of a critic are finite, like `checkLogProbs`. */
export async function checkValues(critic: Critic, rows: readonly Sequence[]): Promise<void> {
  if (rows.length > 0) await predictValues(critic, shortest(rows))
}

/**
 * Checks that the gradient of the log-probabilities is finite. Very large weights can give finite log-probabilities with a gradient that is
 * not finite, independent of the loss. The check takes an optimizer step with learning rate 0, which changes the optimizer state, so it is
 * for runs that have ended.
 *
 * @throws GigpoError `NON_FINITE` for a gradient that is not finite.
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
 * Returns the error of a run that diverged, with the checkpoint to continue from.
 *
 * @param good - newest checkpoint that has not diverged. Later checkpoints are set aside.
 */
export async function withLastCheckpoint(error: Error, run: Run | undefined, good?: Checkpoint): Promise<Error> {
  if (!run) return error
  const last = run.checkpoint
  if (last !== good) await run.rollBackTo(good)
  const aside =
    last === good ? "" : ` The checkpoint after iteration ${last!.iteration} was renamed to suspect-${last!.iteration}.`
  const place = good
    ? `The last good checkpoint is ${good.directory}, after iteration ${good.iteration}.`
    : "There is no good checkpoint: start a new run from the model."
  return nonFinite(`${error.message} ${place}${aside}`, error)
}
