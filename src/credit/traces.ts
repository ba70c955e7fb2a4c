import { checkArguments, checkList, type KeysOf } from "../options/arguments.ts"
import { countGroups } from "./statistics.ts"

export interface TraceSettings {
  /** Discount of what comes next, in (0, 1]. */
  readonly gamma: number
  /** How far one looks past the critic, in [0, 1]: 0 believes the next value, 1 waits for the outcome. */
  readonly lambda: number
}

const settingKeys: KeysOf<TraceSettings> = { gamma: true, lambda: true }

/**
 * Generalized advantage estimation (GAE, arXiv 1506.02438, Eq. 16): A_t = Σ_k (γλ)^k δ_{t+k}, δ_t = r_t + γ V_{t+1} - V_t. The value
 * after an episode's last moment is 0.
 *
 * @param rewards one a moment (a step, or a token), [moments], in time order within an episode
 * @param values the critic's, before each moment, [moments]
 * @param episodes dense ids, [moments]; episodes may interleave
 */
export function generalizedAdvantages(
  rewards: Float64Array,
  values: Float64Array,
  settings: TraceSettings,
  episodes: Int32Array,
): Float64Array {
  checkArguments("generalizedAdvantages", settings, settingKeys)
  checkList("generalizedAdvantages: rewards", rewards)
  checkList("generalizedAdvantages: values", values)
  checkList("generalizedAdvantages: episodes", episodes)
  const { gamma, lambda } = settings
  const count = countGroups(episodes)
  const [nextValue, trace] = [new Float64Array(count), new Float64Array(count)] // of the moment after, by episode
  const advantages = new Float64Array(rewards.length)
  for (let t = rewards.length - 1; t >= 0; t--) {
    const episode = episodes[t]!
    const surprise = rewards[t]! + gamma * nextValue[episode]! - values[t]!
    trace[episode] = surprise + gamma * lambda * trace[episode]!
    nextValue[episode] = values[t]!
    advantages[t] = trace[episode]!
  }
  return advantages
}
