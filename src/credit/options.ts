import { GigpoError } from "../errors.ts"
import type { GigpoOptions, SimilarityOptions } from "./types.ts"

/** Every option decided. */
export type Settings = Required<Omit<GigpoOptions, "similarity">> & {
  readonly similarity: SimilarityOptions | undefined
}

/** Rewards and penalties beyond this size could overflow the squares of their statistics. */
export const MAX_REWARD = 1e100

/** Fills in the paper's values and refuses what has no meaning. */
export function resolveOptions(options: GigpoOptions): Settings {
  const {
    gamma = 0.95,
    omega = 1,
    normalization = "std",
    episodeStatistics = "episodes",
    singletonEpisode = "zero",
    invalidActionPenalty = 0,
    penaltyPlacement = "reward",
    similarity,
    ...unknown
  } = options
  const [name] = Object.keys(unknown)
  if (name !== undefined) throw bad(`Unknown option "${name}". Check its spelling against GigpoOptions.`)
  checkGamma(gamma)
  checkSize("omega", omega)
  checkSize("invalidActionPenalty", invalidActionPenalty)
  checkChoice("normalization", normalization, ["std", "none", "leaveOneOut"])
  checkChoice("episodeStatistics", episodeStatistics, ["episodes", "steps"])
  checkChoice("singletonEpisode", singletonEpisode, ["zero", "raw"])
  checkChoice("penaltyPlacement", penaltyPlacement, ["reward", "row"])
  return {
    gamma,
    omega,
    normalization,
    episodeStatistics,
    singletonEpisode,
    invalidActionPenalty,
    penaltyPlacement,
    similarity: typeof similarity === "number" ? { threshold: similarity } : similarity,
  }
}

export function checkGamma(gamma: number): void {
  if (typeof gamma !== "number" || !(gamma > 0 && gamma <= 1))
    throw bad(`gamma is ${String(gamma)}; give a number above 0 and at most 1.`)
}

function checkSize(name: string, value: number): void {
  if (typeof value !== "number" || !(value >= 0 && value <= MAX_REWARD))
    throw bad(`${name} is ${String(value)}; give a finite number that is not negative.`)
}

function checkChoice(name: string, value: string, choices: readonly string[]): void {
  if (!choices.includes(value))
    throw bad(`${name} is ${JSON.stringify(value)}; give one of ${choices.map((choice) => `"${choice}"`).join(", ")}.`)
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", message)
}
