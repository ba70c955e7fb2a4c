import { GigpoError } from "../errors.ts"
import { clippedSurrogate } from "../kernels.ts"
import type { NativeEngine, NativeLossReport, NativePolicyLoss } from "../native.ts"
import { joinFloats, packRows } from "./pack-rows.ts"
import type { CustomLoss, LossReport, LossSpec, Policy, PolicyLossOptions, Row } from "./policy.ts"
import { settle } from "./started.ts"

const defaults: Required<Omit<PolicyLossOptions, "ratio">> & { temperature: number } = {
  temperature: 1,
  clipLow: 0.2,
  clipHigh: 0.2,
  clipDual: 3,
  klWeight: 0,
  klEstimator: "k3",
  entropyWeight: 0,
  aggregation: "token-mean",
}

type PolicySpec = Extract<LossSpec, { kind: "policy" }>

/**
 * A loss reaches the network only through d loss / d log p of the reply tokens and an entropy bonus. The token-level policy
 * loss and cloning run inside the head's kernel, in one pass; every other loss takes the log-probabilities first, says what
 * their gradient is, and then goes the same way.
 */
export async function forwardBackward(
  policy: Pick<Policy, "logProbs">,
  engine: NativeEngine,
  vocabularySize: number,
  rows: readonly Row[],
  spec: LossSpec,
  signal: AbortSignal | undefined,
): Promise<LossReport> {
  if (rows.length === 0) throw new GigpoError("BAD_ARGUMENT", "There are no rows to train on.")
  if (spec.kind === "clone") {
    const packed = packRows(rows, vocabularySize)
    return await settle(() => engine.forwardBackward(packed, { ...defaults, mode: "clone" }), signal)
  }
  if (spec.kind === "policy") checkLossOptions(spec)
  if (spec.kind === "policy" && (spec.ratio ?? "token") === "token") {
    const packed = packRows(rows, vocabularySize, {
      advantage: true,
      logProbs: true,
      referenceLogProbs: (spec.klWeight ?? 0) !== 0,
    })
    const { kind, ratio, ...options } = spec
    return await settle(() => engine.forwardBackward(packed, { ...defaults, ...options, mode: "policy" }), signal)
  }
  const { temperature = 1 } = spec
  const logProbs = await policy.logProbs(rows, "current", { temperature, ...(signal && { signal }) })
  const found =
    spec.kind === "policy" ? sequenceLoss(spec, logProbs, rows) : checkCustom(spec.loss(logProbs, rows), rows)
  const packed = packRows(rows, vocabularySize)
  const loss: NativePolicyLoss = {
    ...defaults,
    temperature,
    entropyWeight: spec.kind === "policy" ? (spec.entropyWeight ?? 0) : 0,
    aggregation: spec.kind === "policy" ? (spec.aggregation ?? defaults.aggregation) : defaults.aggregation,
    mode: "linear",
  }
  const report: NativeLossReport = await settle(
    () => engine.forwardBackward({ ...packed, gradients: joinFloats(found.gradient) }, loss),
    signal,
  )
  // The native report holds the entropy bonus alone; `found` has the rest.
  return { ...report, ...found.report, loss: found.loss + report.loss }
}

/** GSPO: one ratio for a whole reply, so the whole reply's log-probabilities are needed before any gradient. */
function sequenceLoss(
  spec: PolicySpec,
  logProbs: readonly Float32Array[],
  rows: readonly Row[],
): CustomLoss & { report: Partial<LossReport> } {
  const needs = { advantage: true, logProbs: true, referenceLogProbs: (spec.klWeight ?? 0) !== 0 }
  const packed = packRows(rows, Number.POSITIVE_INFINITY, needs)
  const tokens = packed.logProbs!.length
  const advantages = joinFloats(rows.map((row) => new Float32Array(row.reply.length).fill(row.advantage!)))
  const { kind, temperature, entropyWeight, ...options } = spec
  const { gradient, loss, clipFraction, dualClipFraction, kl, policyKl, ratio } = clippedSurrogate(
    {
      logProbs: joinFloats(logProbs),
      oldLogProbs: packed.logProbs!,
      advantages,
      mask: new Float32Array(tokens).fill(1),
      rows: packed.replyLengths,
      ...(packed.referenceLogProbs && { referenceLogProbs: packed.referenceLogProbs }),
    },
    options,
  )
  return {
    loss,
    gradient: [gradient],
    report: { clipFraction: clipFraction + dualClipFraction, kl, policyKl, ratio },
  }
}

function checkCustom(found: CustomLoss, rows: readonly Row[]): CustomLoss & { report: Partial<LossReport> } {
  const fits =
    found.gradient.length === rows.length &&
    rows.every((row, index) => found.gradient[index]!.length === row.reply.length)
  if (!fits)
    throw new GigpoError(
      "BAD_ARGUMENT",
      "A custom loss must return one gradient array a row, each as long as its reply.",
    )
  if (!Number.isFinite(found.loss) || !found.gradient.every((gradient) => gradient.every(Number.isFinite)))
    throw new GigpoError("NON_FINITE", "A custom loss returned a loss or a gradient that is not finite.")
  return { ...found, report: {} }
}

function checkLossOptions(spec: PolicySpec): void {
  const atLeast0 = ["clipLow", "clipHigh", "klWeight", "entropyWeight"] as const
  for (const name of atLeast0) {
    const value = spec[name]
    if (value !== undefined && !(value >= 0 && Number.isFinite(value)))
      throw new GigpoError("BAD_ARGUMENT", `${name} is ${value}; it must be a number of at least 0.`)
  }
  if (spec.clipDual !== undefined && !(spec.clipDual > 1))
    throw new GigpoError("BAD_ARGUMENT", `clipDual is ${spec.clipDual}; it must be above 1 (Infinity turns it off).`)
  if (spec.temperature !== undefined && !(spec.temperature > 0 && Number.isFinite(spec.temperature)))
    throw new GigpoError("BAD_ARGUMENT", `temperature is ${spec.temperature}; it must be positive.`)
}
