import type { Column } from "../engine/rows.ts"
import { GigpoError } from "../errors.ts"
import { largestReward } from "../largest-reward.ts"
import { flag, number, oneOf, scheduled } from "../options/field.ts"
import type { Moment } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import type { Batch, Estimator } from "./estimator.ts"
import { outcomeFields, outsideRuns, settle } from "./options.ts"
import { paidEstimator } from "./paid-estimator.ts"
import { joinTokens, perToken, rewardsOfTokens, spread } from "./tokens.ts"
import { generalizedAdvantages, type TraceSettings } from "./traces.ts"
import { whiten } from "./whiten.ts"

/** Options of `ppo`. */
export const ppoFields = {
  level: oneOf(
    "token",
    ["token", "step"],
    "What a decision is: every sampled token of an episode, one after the other, or every step as a whole, which the critic " +
      "values before its first token.",
  ),
  gamma: scheduled(number(1, "Discount from one decision to the next, in (0, 1].", { above: 0, most: 1 })),
  lambda: scheduled(
    number(1, "Of GAE, in [0, 1]: 0 believes the critic's next value, 1 waits for the outcome.", { least: 0, most: 1 }),
  ),
  whiten: flag(
    true,
    "The mean of the advantages over all sampled tokens is taken off, and their standard deviation divided by.",
  ),
  whitenOver: oneOf(
    "tokens",
    ["tokens", "steps"],
    'What they are whitened over, at `level: "step"`: all sampled tokens, so that long replies weigh more, or steps, each once (StepPO).',
  ),
  deviation: oneOf(
    "sample",
    ["sample", "population"],
    "Which deviation whitens: of n - 1 values, or of n (turn-level PPO).",
  ),
  epsilon: number(1e-8, "Added to their variance, at least 0.", { least: 0, most: largestReward }),
  invalidActionPenalty: outcomeFields.invalidActionPenalty,
}

export type PpoOptions = OptionsOf<typeof ppoFields>

/**
 * The advantages of PPO with a critic: GAE (arXiv 1506.02438; `generalizedAdvantages`) over tokens or steps of each episode. Its
 * `returns` are A + V before whitening: what the critic should learn, the same for all tokens of a step at `level: "step"`. An episode
 * that was cut off counts as over, since nobody asked the critic where it stopped. Over steps and whitened over steps it is StepPO
 * (AgentR1/StepPO), with the population's deviation turn-level PPO (thu-nics/VPR): `step-ppo` and `turn-ppo` in configuration.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function ppo(options: PpoOptions = {}): Estimator {
  const settingsAt = (moment: Moment) => settle("ppo", options, ppoFields, moment)
  const { level, whitenOver } = settingsAt(outsideRuns)
  if (whitenOver === "steps" && level === "token")
    throw new GigpoError(
      "BAD_ARGUMENT",
      'ppo: whitenOver is "steps", which belongs to level: "step"; set that, or leave it out.',
    )
  return paidEstimator("ppo", settingsAt, { needs: ["value"] }, (batch, settings) => {
    const { gamma, lambda, whiten: isWhitened, deviation: std, epsilon } = settings
    const values = batch.statistics?.value
    if (values === undefined)
      throw new GigpoError("BAD_ARGUMENT", "ppo reads a critic's values before each token; give statistics.value.")
    const over = level === "token" ? overTokens : overSteps
    const found = over(batch, values, { gamma, lambda })
    const each = whitenOver === "steps" ? firstTokens(batch.lengths) : undefined
    const advantages = isWhitened ? whiten(found.advantages, each, { std, epsilon }) : found.advantages
    return { advantages: perToken(advantages, batch.lengths), returns: perToken(found.returns, batch.lengths) }
  })
}

/** 1 for the token that speaks for its step, [tokens]. */
function firstTokens(lengths: Int32Array): Int32Array {
  return Int32Array.from(
    Array.from(lengths).flatMap((length) => Array.from({ length }, (_, token) => (token === 0 ? 1 : 0))),
  )
}

/** Advantages and returns of all tokens, [tokens]. */
interface Traced {
  readonly advantages: Float64Array
  readonly returns: Float64Array
}

function overTokens(batch: Batch, columns: readonly Column[], settings: TraceSettings): Traced {
  const values = joinTokens(columns)
  const episodes = spread(batch.episode, batch.lengths)
  const advantages = generalizedAdvantages(rewardsOfTokens(batch), values, settings, episodes)
  return { advantages, returns: advantages.map((advantage, token) => advantage + values[token]!) }
}

function overSteps({ rewards, episode, lengths }: Batch, columns: readonly Column[], settings: TraceSettings): Traced {
  const values = Float64Array.from(columns, ([first]) => first!)
  const advantages = generalizedAdvantages(rewards, values, settings, episode)
  const returns = advantages.map((advantage, step) => advantage + values[step]!)
  return { advantages: spread(advantages, lengths), returns: spread(returns, lengths) }
}
