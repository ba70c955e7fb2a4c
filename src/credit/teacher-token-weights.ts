import type { TokenColumn } from "../engine/sequence.ts"
import { number, oneOf, scheduled } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { asEstimator, wrapEstimator } from "./as-estimator.ts"
import { tagFields, tagsOf, tokenKinds } from "./completion-spans.ts"
import type { Batch, Estimator, EstimatorContext } from "./estimator.ts"
import { outsideRuns, settle } from "./options.ts"

/** Function that returns log-probabilities of a teacher conditioned on the outcome, [steps][tokens of the step]. */
export type Hindsight = (
  batch: Batch,
  context: EstimatorContext,
) => readonly TokenColumn[] | Promise<readonly TokenColumn[]>

export const teacherTokenWeightFields = {
  alpha: scheduled(
    number(1, "Exponent per nat of difference between teacher and policy; the paper decreases it to 0.", { min: 0 }),
  ),
  low: number(0.5, "Lower bound of the weights. The paper's bound is not known.", { min: 0, max: 1 }),
  high: number(2, "Upper bound of the weights. The paper's bound is not known.", { min: 1 }),
  level: oneOf(
    "token",
    ["token", "step"],
    "Level of the difference from the teacher: each token, or the mean over the action of the step.",
  ),
  ...tagFields,
}

/** Options of `teacherTokenWeights`. */
export type TeacherTokenWeightOptions = OptionsOf<typeof teacherTokenWeightFields>

/**
 * Estimator that weights action tokens by the log-probabilities of a teacher with hindsight (SERL, arXiv 2605.19447). A token has a larger
 * weight where its advantage is positive and the teacher finds it more likely than the policy, or where its advantage is negative and the
 * teacher finds it less likely. The advantage determines the direction of the update, the teacher the tokens:
 *
 *     w = clip(e^(sign(A) alpha D), low, high);  D = log p_teacher(token | feedback) - log p(token)
 *
 * All other tokens have weight 1. Existing weights of the estimator are multiplied. Only a summary of the paper is known, so the bounds and
 * the mean over a step's action are our interpretation. Reports "teacher/log-ratio", the mean of D, and "teacher/token-weight", the mean weight, both
 * over the tokens of actions.
 *
 * @param hindsight log-probabilities of a teacher conditioned on the outcome. Default: those of the training's `teacher`, without the outcome
 * @throws BAD_ARGUMENT for an invalid option
 */
export function teacherTokenWeights(
  estimator: Estimator | Estimator["estimate"],
  options: TeacherTokenWeightOptions = {},
  hindsight?: Hindsight,
): Estimator {
  const tags = tagsOf(settle("teacherTokenWeights", options, teacherTokenWeightFields, outsideRuns))
  const plain = asEstimator(estimator)
  return wrapEstimator(plain, {
    name: `${plain.name}+teacher-token-weights`,
    needs: ["old", "text", ...(hindsight ? [] : (["teacher"] as const))],
    async change(credit, batch, context) {
      const { tokenTexts, statistics: { old, teacher } = {}, lengths } = batch
      const taught = hindsight ? await hindsight(batch, context) : teacher
      if (tokenTexts === undefined || old === undefined || taught === undefined)
        throw new GigpoError(
          "BAD_ARGUMENT",
          "teacherTokenWeights needs the text of each token, statistics.old and statistics.teacher; give all of them.",
        )
      checkTaught(taught, lengths)
      const settings = settle("teacherTokenWeights", options, teacherTokenWeightFields, context.progress)
      let [count, gaps, total] = [0, 0, 0]
      const weights = tokenTexts.map((texts, step) => {
        const before = credit.weights?.[step]
        const weighed = Float32Array.from(texts, (_, t) => before?.[t] ?? 1)
        if (credit.skip?.[step] === 1) return weighed
        const action = [...tokenKinds(texts, tags).entries()].flatMap(([t, kind]) => (kind === "action" ? [t] : []))
        const own = action.map((t) => taught[step]![t]! - old[step]![t]!)
        const mean = own.reduce((sum, gap) => sum + gap, 0) / own.length
        for (const [i, t] of action.entries()) {
          const gap = settings.level === "step" ? mean : own[i]!
          const advantages = credit.advantages[step]!
          const advantage = typeof advantages === "number" ? advantages : advantages[t]!
          const weight = hindsightWeight(gap, advantage, settings)
          weighed[t]! *= weight
          count++
          gaps += own[i]!
          total += weight
        }
        return weighed
      })
      const metrics = count > 0 ? { "teacher/log-ratio": gaps / count, "teacher/token-weight": total / count } : {}
      return { ...credit, weights, metrics: { ...credit.metrics, ...metrics } }
    },
  })
}

/** Weight clip(e^(sign(A) alpha D), low, high) of one token; 1 if its advantage is 0. */
export function hindsightWeight(
  gap: number,
  advantage: number,
  { alpha, low, high }: { readonly alpha: number; readonly low: number; readonly high: number },
): number {
  return Math.min(Math.max(Math.exp(Math.sign(advantage) * alpha * gap), low), high)
}

function checkTaught(taught: readonly TokenColumn[], lengths: Int32Array): void {
  const wrong = lengths.findIndex((length, step) => taught[step]?.length !== length)
  if (wrong >= 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `teacherTokenWeights has ${taught[wrong]?.length ?? "no"} log-probabilities of a teacher for the ${lengths[wrong]} tokens of step ${wrong}; give one per token.`,
    )
}
