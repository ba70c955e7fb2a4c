import { expect, it } from "vitest"
import type { KlEstimator } from "../../src/engine/engine.ts"
import { policyLoss as kernel } from "../../src/kernels/policy-loss.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { klEstimators } from "../../src/loss/kl-estimators.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import { aggregations } from "../../src/loss/options.ts"
import { Random } from "../../src/util/random.ts"
import { now, randomRows } from "./inputs.ts"

const estimators = Object.keys(klEstimators) as KlEstimator[]

/** Within 1e-6 of the larger one's size, or of 1. */
function expectNear(found: number, wanted: number, what: string): void {
  expect(Math.abs(found - wanted), what).toBeLessThanOrEqual(1e-6 * Math.max(1, Math.abs(wanted)))
}

it.each(
  aggregations.flatMap((aggregation) =>
    (["token", "sequence"] as const).flatMap((importanceSamplingLevel) =>
      (["completion", "conversation"] as const).map((unit) => ({ aggregation, importanceSamplingLevel, unit })),
    ),
  ),
)(
  "is what the native kernel computes: $aggregation, ratio of the $importanceSamplingLevel, unit $unit",
  ({ aggregation, importanceSamplingLevel, unit }) => {
    const random = new Random(5)
    const sum = { aggregation, ...(aggregation === "sequence-mean-fixed-length" && { fixedLength: 7 }) }
    for (const klEstimator of estimators)
      for (const klWeight of [0, 0.07])
        for (const clip of [
          {},
          { clipLow: 0.1, clipHigh: 0.28 },
          { clipDual: Infinity },
          { clipDual: 1.2, clipLow: 0 },
        ]) {
          const { rows, statistics } = randomRows(random)
          const input = lossInput(rows, statistics, { ...now, unit })
          const loss = composeLoss(clippedSurrogate({ ...clip, importanceSamplingLevel }), {
            klWeight,
            klEstimator,
            ...sum,
          })
          const found = loss.evaluate(input)

          const columns = {
            logProbs: Float32Array.from(input.logProbs),
            oldLogProbs: Float32Array.from(input.oldLogProbs),
            referenceLogProbs: Float32Array.from(input.referenceLogProbs!),
            advantages: Float32Array.from(input.advantages),
            mask: new Float32Array(input.tokens).fill(1),
            lengths: Int32Array.from(
              { length: input.offsets.length - 1 },
              (_, s) => input.offsets[s + 1]! - input.offsets[s]!,
            ),
          }
          const options = { ...clip, importanceSamplingLevel, klWeight, klEstimator }
          const wanted = kernel(columns, { ...options, ...sum })
          expectNear(found.loss, wanted.loss, "loss")
          for (const [t, value] of wanted.gradient.entries())
            expectNear(found.gradient[t]!, value, `gradient of token ${t}`)
          expectNear(found.metrics!["policy/clip-fraction"]!, wanted.clipFraction, "clips")
          expectNear(found.metrics!["policy/dual-clip-fraction"]!, wanted.dualClipFraction, "dual clips")
          expectNear(found.metrics!["policy/kl"]!, wanted.policyKl, "policy/kl")
          expectNear(found.metrics!["policy/ratio"]!, wanted.ratio, "ratio")
          expectNear(found.metrics!["loss/kl"]!, kernel(columns, options).kl, "loss/kl")
        }
  },
)
