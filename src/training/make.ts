import { asEstimator } from "../credit/as-estimator.ts"
import type { Estimator } from "../credit/estimator.ts"
import { gigpo } from "../credit/gigpo.ts"
import { grpo } from "../credit/grpo.ts"
import { asTokenLoss } from "../loss/as-token-loss.ts"
import { clippedSurrogate } from "../loss/clipped-surrogate.ts"
import { composeLoss } from "../loss/compose-loss.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { readOptions } from "../options/read.ts"
import { type ResolvedTrainOptions, type TrainOptions, trainFields } from "./options.ts"

/** The estimator and the loss of a training, and what they ask to be computed. */
export interface Credited {
  readonly estimator: Estimator
  readonly loss: TokenLoss
  readonly needs: ReadonlySet<string>
}

export function makeCredited(options: Pick<ResolvedTrainOptions, "estimator" | "loss">): Credited {
  const [estimator, loss] = [makeEstimator(options.estimator), makeLoss(options.loss)]
  return { estimator, loss, needs: new Set([...(estimator.needs ?? []), ...(loss.needs ?? [])]) }
}

/** What a training with these options will ask to be computed: known before a model is opened. */
export function needsOf(options: TrainOptions): ReadonlySet<string> {
  return makeCredited(readOptions("train", options, trainFields)).needs
}

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
