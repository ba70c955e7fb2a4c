import { isFloat32Array, isInt32Array } from "node:util/types"
import type { NativeBatch, NativeEngine, NativeLossReport, NativeTrainingLoss, Started } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkSurrogate, checkTemperature } from "../check-arguments.ts"
import type { ClippedSurrogate, LinearLoss, LossReport, NativeLoss } from "../engine.ts"
import type { Sequence } from "../sequence.ts"
import { type BatchNeeds, packRows, placesOf } from "./pack-rows.ts"
import { settle } from "./started.ts"
import { coefficientsOfTop } from "./top-tokens.ts"
import type { Turns } from "./turns.ts"

/** Losses with a native kernel. */
export const nativeLosses: readonly NativeLoss["kind"][] = ["cross-entropy", "clipped-surrogate"]

/** Computes a loss and its gradient; see `Trainable.forwardBackward`. */
export async function forwardBackward(
  engine: NativeEngine,
  turns: Turns,
  rows: readonly Sequence[],
  given: NativeLoss | LinearLoss,
  signal: AbortSignal | undefined,
): Promise<LossReport> {
  const loss = snapshot(given)
  let batch: NativeBatch | undefined
  const prepare = async () => {
    const [packed, options] = await prepareBatch(rows, loss, signal)
    if (packed.spanRows.length === 0) throw bad("There are no sequences to train on")
    batch = packed
    return () => engine.forwardBackward(packed, options)
  }
  const report = await orClear(engine, turns.prepared(prepare, signal), signal)
  return loss.kind === "clipped-surrogate" ? surrogateReport(report, batch!) : plainReport(report)
}

/** Waits for a call. If it was aborted, all gradients are dropped, however much was computed. */
export async function orClear<T>(
  learner: { clearGradients(): Started<void> },
  call: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  return await call.catch((error) => {
    if (signal?.aborted) settle(() => learner.clearGradients()).catch(() => {})
    throw error
  })
}

/** Copies a loss, so that later changes by the caller have no effect. */
function snapshot(loss: NativeLoss | LinearLoss): NativeLoss | LinearLoss {
  if (loss.kind !== "linear") return { ...loss }
  const { coefficients, entropyCoefficients, top, ...rest } = loss
  const copy = (values: Float32Array) => (isFloat32Array(values) ? values.slice() : values)
  return {
    ...rest,
    coefficients: copy(coefficients),
    ...(entropyCoefficients !== undefined && { entropyCoefficients: copy(entropyCoefficients) }),
    ...(top && {
      top: {
        ...top,
        tokens: isInt32Array(top.tokens) ? top.tokens.slice() : top.tokens,
        logProbs: copy(top.logProbs),
      },
    }),
  }
}

/** Returns batch and loss in the form of the engine. */
async function prepareBatch(
  rows: readonly Sequence[],
  loss: NativeLoss | LinearLoss,
  signal: AbortSignal | undefined,
): Promise<[NativeBatch, NativeTrainingLoss]> {
  const { kind, temperature = 1 } = loss
  checkTemperature(temperature)
  switch (kind) {
    case "cross-entropy":
      return [await packRows(rows, { temperature, unweighted: true }, signal), { mode: "sft", temperature }]
    case "linear": {
      const batch = await packRows(rows, { temperature }, signal)
      const tokens = placesOf(batch)
      return [
        { ...batch, ...coefficientsOf(loss, tokens), ...(loss.top && coefficientsOfTop(loss.top, tokens)) },
        { mode: "linear", temperature },
      ]
    }
    case "clipped-surrogate": {
      checkSurrogate(loss)
      const { kind: _, unit = "completion", ...rest } = loss
      const options = { ...rest, unit, temperature, mode: "policy" } as const
      return [await packRows(rows, needsOf(loss, temperature), signal), options]
    }
    default:
      throw bad(`The loss has kind ${JSON.stringify(kind)}; use ${[...nativeLosses, "linear"].join(", ")}`)
  }
}

/** If all segments have log-probabilities of the reference, the KL is reported even if its weight is 0. */
function needsOf({ klWeight }: ClippedSurrogate, temperature: number): BatchNeeds {
  const referenceLogProbs = klWeight !== 0 || "known"
  return { temperature, advantages: true, oldLogProbs: true, referenceLogProbs, unweighted: true }
}

function coefficientsOf(loss: LinearLoss, tokens: number): Pick<NativeBatch, "coefficients" | "entropyCoefficients"> {
  const checked = (name: "coefficients" | "entropyCoefficients"): Float32Array => {
    const values = loss[name]
    if (!isFloat32Array(values) || values.length !== tokens)
      throw bad(`${name} must be a Float32Array with one number for each of the ${tokens} sampled tokens`)
    if (values.some((value) => !Number.isFinite(value)))
      throw new GigpoError("NON_FINITE", `The loss's ${name} contain a number that is not finite.`)
    return values
  }
  return {
    coefficients: checked("coefficients"),
    ...(loss.entropyCoefficients !== undefined && { entropyCoefficients: checked("entropyCoefficients") }),
  }
}

function plainReport({ loss, tokens, computedTokens, reusedTokens, entropy, logProbs }: NativeLossReport): LossReport {
  const metrics = tokens === 0 ? {} : { "policy/entropy": entropy }
  return { loss, tokens, computedTokens, reusedTokens, metrics, logProbs }
}

function surrogateReport(report: NativeLossReport, { referenceLogProbs }: NativeBatch): LossReport {
  const plain = plainReport(report)
  if (report.tokens === 0) return plain
  const metrics = {
    ...(referenceLogProbs && { "loss/kl": report.kl }),
    "policy/clip-fraction": report.clipFraction,
    "policy/dual-clip-fraction": report.dualClipFraction,
    "policy/kl": report.policyKl,
    "policy/ratio": report.ratio,
  }
  return { ...plain, metrics: { ...plain.metrics, ...metrics } }
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
