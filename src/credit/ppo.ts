import type { TokenColumn } from "../engine/sequence.ts"
import { boolean, number, oneOf, scheduled } from "../options/field.ts"
import type { TrainingProgress } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import { largestReward } from "../util/largest-reward.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Batch, Estimator } from "./estimator.ts"
import { outcomeFields, outsideRuns, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { joinTokens, perToken, rewardsOfTokens, spread } from "./tokens.ts"
import { generalizedAdvantages, type TraceSettings } from "./traces.ts"
import { whiten } from "./whiten.ts"

/** Defaults of the variants with decisions per step. Each step counts once. */
const stepDefaults = { level: "step", whitenOver: "steps" } as const

/** Options of `ppo`. */
export const ppoFields = {
  level: oneOf(
    "token",
    ["token", "step"],
    "Unit of a decision: each sampled token of an episode, or each step as a whole, which the critic " +
      "values before its first token.",
  ),
  gamma: scheduled(number(1, "Discount factor from one decision to the next, in (0, 1].", { above: 0, max: 1 })),
  lambda: scheduled(
    number(1, "λ of GAE, in [0, 1]: 0 uses the critic's next value only, 1 the outcome only.", { min: 0, max: 1 }),
  ),
  whiten: boolean(
    true,
    "Whether to whiten the advantages: normalize them to mean 0 and standard deviation 1 over all sampled tokens.",
  ),
  whitenOver: oneOf(
    "tokens",
    ["tokens", "steps"],
    'Items of the whitening with `level: "step"`: all sampled tokens, so that long completions have more weight, or steps, each once (StepPO).',
  ),
  std: oneOf(
    "sample",
    ["sample", "population"],
    "Standard deviation of the whitening: of the sample (n - 1), or of the population (n) (turn-level PPO).",
  ),
  epsilon: number(1e-8, "Constant added to the variance, at least 0.", { min: 0, max: largestReward }),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

/** Options of `ppo`. */
export type PpoOptions = OptionsOf<typeof ppoFields>

/**
 * PPO advantages with a critic: GAE (arXiv 1506.02438; `generalizedAdvantages`) over the tokens or steps of each episode. `returns` are A
 * + V before whitening, the target of the critic; with `level: "step"` they are equal for all tokens of a step. Truncated episodes are
 * treated as terminated, since the critic does not evaluate their final state. With `level: "step"` and whitening over steps the estimator
 * is StepPO (AgentR1/StepPO, `step-ppo` in configurations). With the population deviation in addition it is turn-level PPO (thu-nics/VPR,
 * `turn-ppo`).
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const ppo = defineEstimator({
  name: "ppo",
  fields: ppoFields,
  about: {
    system: "PPO",
    origin: "baseline",
    changes: ["credit"],
    equation: "A = Σ (γ λ)^k δ, δ = r + γ V' - V, over tokens; whitened",
    source: "arXiv 1506.02438, 1707.06347",
    status: "exact",
    otherFiles: ["src/credit/traces.ts"],
    note: "The advantage is GAE, generalized advantage estimation. Needs a critic: a separate transformer initialized from the policy.",
  },
  variants: {
    "step-ppo": {
      defaults: stepDefaults,
      about: {
        system: "StepPO",
        origin: "successor",
        changes: ["credit"],
        equation: "δ = r + γ V' - V, A = δ + γ λ A' over steps, whitened over steps by n - 1",
        source: "AgentR1/StepPO",
        status: "exact",
      },
    },
    "turn-ppo": {
      defaults: { ...stepDefaults, std: "population" },
      about: {
        system: "turn-level PPO",
        origin: "relative",
        changes: ["credit"],
        equation: "δ = r + γ V' - V, A = δ + γ λ A' over steps, whitened over steps by n",
        source: "thu-nics/VPR",
        status: "exact",
      },
    },
  },
  make(options: PpoOptions = {}): Estimator {
    const settingsAt = (progress: TrainingProgress) => settle("ppo", options, ppoFields, progress)
    const { level, whitenOver } = settingsAt(outsideRuns)
    if (whitenOver === "steps" && level === "token")
      throw new GigpoError(
        "BAD_ARGUMENT",
        'ppo: whitenOver is "steps", which needs level: "step"; set level, or leave whitenOver out.',
      )
    return paidEstimator("ppo", settingsAt, { needs: ["value"] }, (batch, settings) => {
      const { gamma, lambda, whiten: isWhitened, std, epsilon } = settings
      const values = batch.statistics?.value
      if (values === undefined)
        throw new GigpoError("BAD_ARGUMENT", "ppo needs the critic's value before each token; give statistics.value.")
      const over = level === "token" ? overTokens : overSteps
      const found = over(batch, values, { gamma, lambda })
      const each = whitenOver === "steps" ? firstTokens(batch.lengths) : undefined
      const advantages = isWhitened ? whiten(found.advantages, each, { std, epsilon }) : found.advantages
      return { advantages: perToken(advantages, batch.lengths), returns: perToken(found.returns, batch.lengths) }
    })
  },
})

/** 1 for the first token of each step, which represents the step, [tokens]. */
function firstTokens(lengths: Int32Array): Int32Array {
  const first = new Int32Array(lengths.reduce((sum, length) => sum + length, 0))
  let begin = 0
  for (const length of lengths) {
    first[begin] = 1
    begin += length
  }
  return first
}

/** Advantages and returns of all tokens, [tokens]. */
interface Traced {
  readonly advantages: Float64Array
  readonly returns: Float64Array
}

function overTokens(batch: Batch, columns: readonly TokenColumn[], settings: TraceSettings): Traced {
  const values = joinTokens(columns)
  const episodes = spread(batch.episode, batch.lengths)
  const advantages = generalizedAdvantages(rewardsOfTokens(batch), values, settings, episodes)
  return { advantages, returns: advantages.map((advantage, token) => advantage + values[token]!) }
}

function overSteps(
  { rewards, episode, lengths }: Batch,
  columns: readonly TokenColumn[],
  settings: TraceSettings,
): Traced {
  const values = Float64Array.from(columns, ([first]) => first!)
  const advantages = generalizedAdvantages(rewards, values, settings, episode)
  const returns = advantages.map((advantage, step) => advantage + values[step]!)
  return { advantages: spread(advantages, lengths), returns: spread(returns, lengths) }
}
