import { checkArguments, checkList, type KeysOf } from "../options/arguments.ts"
import { countGroups } from "./statistics.ts"

export interface TraceSettings {
  /** Discount factor from one moment to the next, in (0, 1]. */
  readonly gamma: number
  /** λ of GAE, in [0, 1]. 0 uses the critic's next value only, 1 the whole return. */
  readonly lambda: number
}

const settingKeys: KeysOf<TraceSettings> = { gamma: true, lambda: true }

/**
 * Returns generalized advantage estimates (GAE, arXiv 1506.02438, Eq. 16): A_t = Σ_k (γλ)^k δ_{t+k}, δ_t = r_t + γ V_{t+1} - V_t. The
 * value after the last moment of an episode is 0.
 *
 * @param rewards reward of each moment (a step or a token), [moments], in time order within an episode
 * @param values value of the critic before each moment, [moments]
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
