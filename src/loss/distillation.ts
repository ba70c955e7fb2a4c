import type { KlEstimator } from "../engine/engine.ts"
import { integer, number, oneOf } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { defineLoss } from "./define-loss.ts"
import { divergenceAt, forwardKl, jensenShannon } from "./divergences.ts"
import { klEstimators } from "./kl-estimators.ts"
import { sumTokens } from "./sum-tokens.ts"
import type { LossInput, LossOutput, TokenLoss } from "./token-loss.ts"

export const distillationFields = {
  divergence: oneOf(
    "reverse",
    ["reverse", "forward", "jensen-shannon"],
    "Divergence that is minimized at each sampled token: reverse is KL(policy ‖ teacher), estimated from the sampled token; forward is " +
      "KL(teacher ‖ policy) and jensen-shannon lies between them, both computed from the teacher's most likely tokens.",
  ),
  estimator: oneOf<KlEstimator, "k1+", string>(
    "k1+",
    ["k1", "k2", "k3", "abs", "k1+", "k3+"],
    "Estimator of the divergence reverse, as klEstimator with the teacher in place of the reference. The expected gradient of k1 is 0; " +
      "that of k1+ is the gradient of the KL.",
  ),
  teacherTop: integer(
    20,
    "Number of the teacher's most likely tokens at each position, for forward and jensen-shannon; all other tokens are merged into one.",
    {
      min: 1,
    },
  ),
  mixture: number(0.5, "Share of the teacher in the mixture distribution of jensen-shannon.", {
    above: 0,
    below: 1,
  }),
}

/** Options of `distillation`. */
export type DistillationOptions = OptionsOf<typeof distillationFields>

/**
 * On-policy distillation (arXiv 2306.13649; for agents TCOD, arXiv 2604.24005): minimizes a divergence between the policy p and a teacher q
 * at the tokens that the policy sampled. The divergences "reverse", "forward" and "jensen-shannon" are
 *
 *     KL(p ‖ q), an estimate by d = log q - log p;  KL(q ‖ p);  β KL(q ‖ m) + (1 - β) KL(p ‖ m), m = β q + (1 - β) p
 *
 * The paper of TCOD has "forward", its code an advantage with the gradient of "reverse". Advantages are not read. Reports "distillation/divergence" (mean over tokens), "policy/kl" and "policy/ratio".
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option.
 */
export const distillation = defineLoss({
  name: "distillation",
  fields: distillationFields,
  about: {
    system: "on-policy distillation",
    origin: "baseline",
    changes: ["data", "loss"],
    equation: "KL(policy ‖ teacher) on the policy's completions, estimated from the sampled tokens",
    source: "arXiv 2306.13649",
    brings: "teacher",
    status: "exact",
    note: "The divergences forward and jensen-shannon use the teacher's most likely tokens.",
  },
  make(given: DistillationOptions = {}): TokenLoss {
    const options = readOptions("distillation", given, distillationFields)
    if (options.divergence !== "reverse")
      return {
        name: "distillation",
        teacherTop: options.teacherTop,
        evaluate: (input) => fromTop(input, options),
      }
    const { value, gradient } = klEstimators[options.estimator]
    return {
      name: "distillation",
      needs: ["teacher"],
      evaluate(input) {
        const { teacherLogProbs } = input
        if (teacherLogProbs === undefined) throw missing("teacherLogProbs")
        return measured(input, (logProb, t) => {
          const d = teacherLogProbs[t]! - logProb
          return [value(d), gradient(d)]
        })
      },
    }
  },
})

function fromTop(input: LossInput, { divergence, mixture }: ResolvedOf<typeof distillationFields>): LossOutput {
  const { tokens, teacherTop, shares, weights } = input
  if (teacherTop === undefined) throw missing("teacherTop")
  const { count, teacher, policy } = teacherTop
  const term = divergence === "forward" ? forwardKl : jensenShannon(mixture)
  const slopes = new Float64Array(tokens * count)
  const output = measured(input, (_, t) => [divergenceAt(term, policy, teacher, t * count, count, slopes), 0])
  const topGradient = Float32Array.from(slopes, (slope, i) => {
    const t = Math.floor(i / count)
    return shares[t]! * (weights?.[t] ?? 1) * slope
  })
  return { ...output, topGradient }
}

/** Weighted sum over tokens, with the unweighted mean as a metric. */
function measured(
  input: LossInput,
  of: (logProb: number, t: number) => readonly [value: number, slope: number],
): LossOutput {
  let total = 0
  const output = sumTokens(input, ({ logProb }, t) => {
    const found = of(logProb, t)
    total += found[0]
    return found
  })
  const mean = input.tokens === 0 ? 0 : total / input.tokens
  return { ...output, metrics: { ...output.metrics, "distillation/divergence": mean } }
}

function missing(column: string): GigpoError {
  return new GigpoError(
    "BAD_ARGUMENT",
    `distillation needs the probabilities of a teacher; set ${column} of each span.`,
  )
}
