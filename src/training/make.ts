import { asEstimator } from "../credit/as-estimator.ts"
import type { Estimator } from "../credit/estimator.ts"
import { gigpo } from "../credit/gigpo.ts"
import { grpo } from "../credit/grpo.ts"
import { asTokenLoss } from "../loss/as-token-loss.ts"
import { clippedSurrogate } from "../loss/clipped-surrogate.ts"
import { composeLoss } from "../loss/compose-loss.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import type { ResolvedTrainOptions } from "./options.ts"

/** The estimator that resolved options speak of. */
export function makeEstimator(options: ResolvedTrainOptions["estimator"]): Estimator {
  if ("use" in options) return asEstimator(options.use)
  const { name, ...own } = options
  return name === "gigpo" ? gigpo(own) : grpo(own)
}

/** The loss that resolved options speak of, with KL, entropy bonus and aggregation around it. */
export function makeLoss(options: ResolvedTrainOptions["loss"]): TokenLoss {
  const { klWeight, klEstimator, entropyWeight, aggregation, ...own } = options
  const around = { klWeight, klEstimator, entropyWeight, aggregation }
  if ("use" in own) return composeLoss(asTokenLoss(own.use), around)
  const { name: _, ...clip } = own
  return composeLoss(clippedSurrogate(clip), around)
}
