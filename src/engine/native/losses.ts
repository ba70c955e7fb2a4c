import { isFloat32Array } from "node:util/types"
import { GigpoError } from "../../errors.ts"
import type { NativeBatch, NativeEngine, NativeLossReport, NativeTrainingLoss } from "../../native.ts"
import { checkSurrogate, checkTemperature } from "../check-arguments.ts"
import type { ClippedSurrogate, LinearLoss, LossReport, NativeLoss } from "../engine.ts"
import { type Row, sampledTokens } from "../rows.ts"
import { type BatchNeeds, packRows } from "./pack-rows.ts"
import { settle } from "./started.ts"

/** The losses that the engine runs in its own kernel. */
export const nativeLosses: readonly NativeLoss["kind"][] = ["cross-entropy", "clipped-surrogate"]

export async function forwardBackward(
  engine: NativeEngine,
  rows: readonly Row[],
  loss: NativeLoss | LinearLoss,
  signal: AbortSignal | undefined,
): Promise<LossReport> {
  if (sampledTokens(rows) === 0) {
    // An empty span has a sentence of its own.
    packRows(rows, { temperature: loss.temperature ?? 1 })
    throw bad("There are no rows to train on")
  }
  const [batch, options] = prepare(rows, loss)
  const report = await settle(() => engine.forwardBackward(batch, options), signal)
  return loss.kind === "clipped-surrogate" ? surrogateReport(report, batch) : plainReport(report)
}

/** The batch and the loss as the engine takes them. */
function prepare(rows: readonly Row[], loss: NativeLoss | LinearLoss): [NativeBatch, NativeTrainingLoss] {
  const { kind, temperature = 1 } = loss
  checkTemperature(temperature)
  switch (kind) {
    case "cross-entropy":
      refuseWeights(rows)
      return [packRows(rows, { temperature }), { mode: "clone", temperature }]
    case "linear":
      return [
        { ...packRows(rows, { temperature }), ...copyCoefficients(loss, sampledTokens(rows)) },
        { mode: "linear", temperature },
      ]
    case "clipped-surrogate": {
      checkSurrogate(loss)
      refuseWeights(rows)
      const { kind: _, unit = "span", ...rest } = loss
      const options = { ...rest, unit, temperature, mode: "policy" } as const
      return [packRows(rows, needsOf(loss, rows, temperature)), options]
    }
    default:
      throw bad(`The loss is of kind ${JSON.stringify(kind)}; give ${[...nativeLosses, "linear"].join(", ")}`)
  }
}

/** Where every span has log-probabilities of the reference, the KL is reported even if its weight is 0. */
function needsOf({ klWeight }: ClippedSurrogate, rows: readonly Row[], temperature: number): BatchNeeds {
  const every = rows.every(({ spans }) => spans.every((span) => span.referenceLogProbs !== undefined))
  return { temperature, advantages: true, oldLogProbs: true, referenceLogProbs: klWeight !== 0 || every }
}

/** The kernels know neither; ignored, they would give another loss than was asked for. */
function refuseWeights(rows: readonly Row[]): void {
  for (const [index, { spans }] of rows.entries()) {
    for (const { weights, clipScale = 1 } of spans) {
      if (weights !== undefined || clipScale !== 1)
        throw bad(
          `rows[${index}] has ${weights ? "weights" : "a clipScale"}; evaluate the loss and give it as a "linear" one`,
        )
    }
  }
}

/** Copies, since the engine reads them later. */
function copyCoefficients(loss: LinearLoss, tokens: number): Pick<NativeBatch, "coefficients" | "entropyCoefficients"> {
  const copy = (name: "coefficients" | "entropyCoefficients"): Float32Array => {
    const values = loss[name]
    if (!isFloat32Array(values) || values.length !== tokens)
      throw bad(`${name} must be a Float32Array with one number for each of the ${tokens} sampled tokens`)
    if (values.some((value) => !Number.isFinite(value)))
      throw new GigpoError("NON_FINITE", `The loss's ${name} hold a number that is not finite.`)
    return values.slice()
  }
  return {
    coefficients: copy("coefficients"),
    ...(loss.entropyCoefficients !== undefined && { entropyCoefficients: copy("entropyCoefficients") }),
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
