import { asEstimator } from "../credit/as-estimator.ts"
import type { Estimator } from "../credit/estimator.ts"
import { estimators } from "../credit/estimators.ts"
import { teacherTokenWeights } from "../credit/teacher-token-weights.ts"
import { tokenWeights } from "../credit/token-weights.ts"
import { asTokenLoss } from "../loss/as-token-loss.ts"
import { composeLoss } from "../loss/compose-loss.ts"
import { losses } from "../loss/losses.ts"
import { lossFields } from "../loss/options.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { only } from "../options/fixed.ts"
import { makeNamed } from "../options/named.ts"
import { readOptions } from "../options/read.ts"
import { rolloutHooks } from "../rollout/hooks/built-in.ts"
import type { RolloutHooks } from "../rollout/hooks.ts"
import { GigpoError } from "../util/errors.ts"
import { checkGroups, checkTogether } from "./check-options.ts"
import { curricula } from "./curriculum/curricula.ts"
import type { Curriculum } from "./curriculum/curriculum.ts"
import { type Kl, makeKl } from "./kl.ts"
import { type ResolvedTrainOptions, type TrainOptions, trainFields } from "./options.ts"

/** Estimator and loss of a training run, and the statistics that they need. */
export interface Credited {
  readonly estimator: Estimator
  readonly loss: TokenLoss
  readonly kl: Kl
  readonly needs: ReadonlySet<string>
}

export function makeCredited(
  options: Pick<
    ResolvedTrainOptions,
    "estimator" | "loss" | "oldLogProbs" | "tokenWeights" | "teacherTokenWeights" | "privileged"
  >,
): Credited {
  let estimator = makeEstimator(options.estimator)
  if (options.tokenWeights) estimator = tokenWeights(estimator, options.tokenWeights)
  if (options.teacherTokenWeights) estimator = teacherTokenWeights(estimator, options.teacherTokenWeights)
  const kl = makeKl(options.loss)
  const inReward = kl.place === "reward" && kl.weight !== 0
  const loss = makeLoss({ ...options.loss, klWeight: inReward ? 0 : kl.weight })
  const needs = new Set<string>([...(estimator.needs ?? []), ...(loss.needs ?? [])])
  if (inReward) needs.add("reference")
  if (options.oldLogProbs === "recomputed") needs.add("old")
  if (loss.teacherTop) needs.add("teacher")
  if (options.privileged) replaceTeacher(needs, options.privileged.model)
  return { estimator, loss, kl, needs }
}

/** Replaces the need of a teacher by that of the policy's own weights, where these score with a text in front. */
function replaceTeacher(needs: Set<string>, model: "policy" | "reference" | "teacher"): void {
  if (!needs.has("teacher"))
    throw new GigpoError(
      "BAD_ARGUMENT",
      "train: privileged has no effect without a loss or estimator that learns from a teacher: set loss.name to distillation, or " +
        "loss.teacherWeight or teacherTokenWeights, or leave privileged out.",
    )
  if (model === "teacher") return
  needs.delete("teacher")
  needs.add("privileged")
  if (model === "reference") needs.add("privileged-reference")
}

/** Returns the statistics that a training run with these options needs. No model is required. */
export function needsOf(options: TrainOptions): ReadonlySet<string> {
  const resolved = readOptions("train", options, trainFields)
  checkTogether(resolved)
  const { estimator, needs } = makeCredited(resolved)
  checkGroups(estimator, resolved)
  return needs
}

/** Whether a frozen reference policy is needed: for log-probabilities, for Hellinger distances, or as a privileged teacher. */
export function needsReference(needs: ReadonlySet<string>): boolean {
  return needs.has("reference") || needs.has("hellinger") || needs.has("privileged-reference")
}

/** Makes the estimator of resolved options. */
export function makeEstimator(options: ResolvedTrainOptions["estimator"]): Estimator {
  return "use" in options ? asEstimator(options.use) : makeNamed<Estimator>(estimators, options)
}

/** Makes the curriculum of resolved options; undefined if there is none. */
export function makeCurriculum(options: ResolvedTrainOptions["curriculum"]): Curriculum | undefined {
  if (!options || "use" in options) return options?.use
  return makeNamed<Curriculum>(curricula, options)
}

/** Makes the rollout hooks of resolved options; undefined if there are none. */
export function makeTurns(options: ResolvedTrainOptions["rolloutHooks"]): RolloutHooks | undefined {
  if (!options || "use" in options) return options?.use
  return makeNamed<RolloutHooks>(rolloutHooks, options)
}

/** Makes the loss of resolved options, with KL term, entropy bonus and aggregation. */
export function makeLoss(options: ResolvedTrainOptions["loss"]): TokenLoss {
  const around = only(options, lossFields)
  const loss = "use" in options ? asTokenLoss(options.use) : makeNamed<TokenLoss>(losses, options)
  return composeLoss(loss, around)
}
