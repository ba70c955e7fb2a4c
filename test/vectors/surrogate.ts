import type { KlEstimator } from "../../src/engine/engine.ts"
import { adaptiveKl } from "../../src/loss/adaptive-kl.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { gspo } from "../../src/loss/gspo.ts"
import { klEstimators } from "../../src/loss/kl-estimators.ts"
import type { TokenLoss } from "../../src/loss/token-loss.ts"
import { aggregationOf, lossInputOf, tableOf } from "./loss-input.ts"
import { type Results, read, type Topic, type Vector } from "./topic.ts"

// The clipped surrogate, the KL term around it, and the weight of that.

export const surrogateTopics: Readonly<Record<string, Topic>> = {
  clipped_surrogate: (vector) =>
    clipped(vector, clippedSurrogate({ ...clips(vector), clipDual: read<number>(vector.params, "dual_clip") })),
  gspo: (vector) => clipped(vector, gspo(clips(vector))),
  kl,
  adaptive_kl: ({ params, inputs }) => {
    const number = (name: string) => read<number>(params, name)
    const control = adaptiveKl({ weight: number("initial"), target: number("target"), horizon: number("horizon") })
    const after = (measured: number) => {
      control.update(measured, number("steps"))
      return control.weight
    }
    return { weight: read<readonly number[]>(inputs, "kl").map(after) }
  },
}

function clips({ params }: Vector) {
  return { clipLow: read<number>(params, "clip_low"), clipHigh: read<number>(params, "clip_high") }
}

function clipped(vector: Vector, policy: TokenLoss): Results {
  const { loss, gradient, metrics } = composeLoss(policy, aggregationOf(vector)).evaluate(lossInputOf(vector))
  return {
    loss,
    dlogp: tableOf(vector, gradient),
    clip_fraction: metrics!["policy/clip-fraction"],
    dual_clip_fraction: metrics!["policy/dual-clip-fraction"],
    kl: metrics!["policy/kl"],
  }
}

/** The KL term alone: around no loss, at a weight of 1. */
function kl(vector: Vector): Results {
  const klEstimator = read<KlEstimator>(vector.params, "estimator")
  const none: TokenLoss = { name: "none", evaluate: ({ tokens }) => ({ loss: 0, gradient: new Float32Array(tokens) }) }
  const input = lossInputOf(vector)
  const terms = { ...aggregationOf(vector), klWeight: 1, klEstimator }
  const { loss, gradient } = composeLoss(none, terms).evaluate(input)
  const estimates = input.logProbs.map((logProb, t) =>
    klEstimators[klEstimator].value(input.referenceLogProbs![t]! - logProb),
  )
  return { loss, dlogp: tableOf(vector, gradient), kl: tableOf(vector, estimates) }
}
