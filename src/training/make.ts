import { asEstimator } from "../credit/as-estimator.ts"
import type { Estimator } from "../credit/estimator.ts"
import { estimators } from "../credit/estimators.ts"
import { teacherWeights } from "../credit/teacher-weights.ts"
import { tokenWeights } from "../credit/token-weights.ts"
import { asTokenLoss } from "../loss/as-token-loss.ts"
import { composeLoss } from "../loss/compose-loss.ts"
import { losses } from "../loss/losses.ts"
import { lossFields } from "../loss/options.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { only } from "../options/fixed.ts"
import { makeNamed } from "../options/named.ts"
import { readOptions } from "../options/read.ts"
import { turnHooks } from "../rollout/hooks/turn-hooks.ts"
import type { RolloutHooks } from "../rollout/hooks.ts"
import { checkGroups, checkTogether } from "./check-options.ts"
import { curricula } from "./curriculum/curricula.ts"
import type { Curriculum } from "./curriculum/curriculum.ts"
import { type Kl, makeKl } from "./kl.ts"
import { type ResolvedTrainOptions, type TrainOptions, trainFields } from "./options.ts"

/** The estimator and the loss of a training, and what they ask to be computed. */
export interface Credited {
  readonly estimator: Estimator
  readonly loss: TokenLoss
  readonly kl: Kl
  readonly needs: ReadonlySet<string>
}

export function makeCredited(
  options: Pick<ResolvedTrainOptions, "estimator" | "loss" | "oldLogProbs" | "tokenWeights" | "teacherWeights">,
): Credited {
  let estimator = makeEstimator(options.estimator)
  if (options.tokenWeights) estimator = tokenWeights(estimator, options.tokenWeights)
  if (options.teacherWeights) estimator = teacherWeights(estimator, options.teacherWeights)
  const kl = makeKl(options.loss)
  const inReward = kl.place === "reward" && kl.weight !== 0
  const loss = makeLoss({ ...options.loss, klWeight: inReward ? 0 : kl.weight })
  const needs = new Set<string>([...(estimator.needs ?? []), ...(loss.needs ?? [])])
  if (inReward) needs.add("reference")
  if (options.oldLogProbs === "recomputed") needs.add("old")
  if (loss.teacherTop) needs.add("teacher")
  return { estimator, loss, kl, needs }
}

/** What a training with these options will ask to be computed: known before a model is opened. */
export function needsOf(options: TrainOptions): ReadonlySet<string> {
  const resolved = readOptions("train", options, trainFields)
  checkTogether(resolved)
  const { estimator, needs } = makeCredited(resolved)
  checkGroups(estimator, resolved)
  return needs
}

/** Whether a frozen copy of the policy is to be kept: for its log-probabilities, or for how far its distributions lie. */
export function needsReference(needs: ReadonlySet<string>): boolean {
  return needs.has("reference") || needs.has("hellinger")
}

/** The estimator that resolved options speak of. */
export function makeEstimator(options: ResolvedTrainOptions["estimator"]): Estimator {
  return "use" in options ? asEstimator(options.use) : makeNamed<Estimator>(estimators, options)
}

/** The curriculum that resolved options speak of; undefined where there is none. */
export function makeCurriculum(options: ResolvedTrainOptions["curriculum"]): Curriculum | undefined {
  if (!options || "use" in options) return options?.use
  return makeNamed<Curriculum>(curricula, options)
}

/** The hooks of turns that resolved options speak of, likewise. */
export function makeTurns(options: ResolvedTrainOptions["turnHooks"]): RolloutHooks | undefined {
  if (!options || "use" in options) return options?.use
  return makeNamed<RolloutHooks>(turnHooks, options)
}

/** The loss that resolved options speak of, with KL, entropy bonus and aggregation around it. */
export function makeLoss(options: ResolvedTrainOptions["loss"]): TokenLoss {
  const around = only(options, lossFields)
  const loss = "use" in options ? asTokenLoss(options.use) : makeNamed<TokenLoss>(losses, options)
  return composeLoss(loss, around)
}
