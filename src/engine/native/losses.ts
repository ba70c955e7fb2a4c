import { GigpoError } from "../../errors.ts"
import { clippedSurrogate } from "../../kernels.ts"
import { resolveLossOptions, trainingAggregations } from "../../loss/loss-options.ts"
import type { NativeEngine } from "../../native.ts"
import { checkTemperature } from "../check-arguments.ts"
import type { CustomLoss, LossReport, LossSpec, Policy, PolicyLossOptions, Row } from "../engine.ts"
import { joinFloats, packRows, type RowNeeds } from "./pack-rows.ts"
import { settle } from "./started.ts"

type LossOptions = Required<PolicyLossOptions>

/** What the losses without options pass on: no entropy bonus, and nothing else that would count. */
const plain: LossOptions = resolveLossOptions({}, trainingAggregations)

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
    return await settle(() => engine.forwardBackward(packed, { ...plain, temperature: 1, mode: "clone" }), signal)
  }
  const { temperature = 1 } = spec
  checkTemperature(temperature)
  const options = spec.kind === "policy" ? resolveLossOptions(spec, trainingAggregations) : plain
  if (spec.kind === "policy" && options.ratio === "token") {
    const packed = packRows(rows, vocabularySize, needsOf(options, rows))
    return await settle(() => engine.forwardBackward(packed, { ...options, temperature, mode: "policy" }), signal)
  }
  const logProbs = await policy.logProbs(rows, "current", { temperature, ...(signal && { signal }) })
  const found =
    spec.kind === "policy" ? sequenceLoss(options, logProbs, rows) : checkCustom(spec.loss(logProbs, rows), rows)
  const packed = { ...packRows(rows, vocabularySize), gradients: joinFloats(found.gradient) }
  const report = await settle(() => engine.forwardBackward(packed, { ...options, temperature, mode: "linear" }), signal)
  // The native report holds the entropy bonus alone; `found` has the rest.
  return { ...report, ...found.report, loss: found.loss + report.loss }
}

/** Where every row has log-probabilities of the reference, the KL is reported even if its weight is 0. */
function needsOf({ klWeight }: LossOptions, rows: readonly Row[]): RowNeeds {
  const referenceLogProbs = klWeight !== 0 || rows.every((row) => row.referenceLogProbs !== undefined)
  return { advantage: true, logProbs: true, referenceLogProbs }
}

/** GSPO: one ratio for a whole reply, so the whole reply's log-probabilities are needed before any gradient. */
function sequenceLoss(
  options: LossOptions,
  logProbs: readonly Float32Array[],
  rows: readonly Row[],
): CustomLoss & { report: Partial<LossReport> } {
  const packed = packRows(rows, Number.POSITIVE_INFINITY, needsOf(options, rows))
  const tokens = packed.logProbs!.length
  const advantages = joinFloats(rows.map((row) => new Float32Array(row.reply.length).fill(row.advantage!)))
  const input = {
    logProbs: joinFloats(logProbs),
    oldLogProbs: packed.logProbs!,
    advantages,
    mask: new Float32Array(tokens).fill(1),
    rows: packed.replyLengths,
    ...(packed.referenceLogProbs && { referenceLogProbs: packed.referenceLogProbs }),
  }
  const { gradient, loss, clipFraction, dualClipFraction, policyKl, ratio } = clippedSurrogate(input, options)
  // The surrogate's KL is aggregated as its loss is; the report wants the mean over tokens.
  const { kl } = clippedSurrogate(input, { ...options, aggregation: "token-mean" })
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
