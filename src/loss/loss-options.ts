import type { Aggregation, PolicyLossOptions } from "../engine/engine.ts"
import { GigpoError } from "../errors.ts"

const estimators = ["k1", "k2", "k3"] as const
const ratios = ["token", "sequence"] as const

export const trainingAggregations: readonly Aggregation[] = [
  "token-mean",
  "sequence-mean-token-sum",
  "sequence-mean-token-mean",
]

interface Options<A> extends Omit<PolicyLossOptions, "aggregation"> {
  readonly aggregation?: A
}

/** Fills in the defaults (the first of `aggregations` is one) and refuses what has no meaning. */
export function resolveLossOptions<A extends string>(
  options: Options<A>,
  aggregations: readonly A[],
): Required<Options<A>> {
  const {
    clipLow = 0.2,
    clipHigh = 0.2,
    clipDual = 3,
    klWeight = 0,
    klEstimator = "k3",
    entropyWeight = 0,
    aggregation = aggregations[0]!,
    ratio = "token",
    skipZeroAdvantage = false,
  } = options
  for (const [name, value] of Object.entries({ clipLow, clipHigh, klWeight, entropyWeight })) {
    if (!(value >= 0 && Number.isFinite(value))) throw bad(`${name} is ${value}; it must be a number of at least 0`)
  }
  if (!(clipDual > 1)) throw bad(`clipDual is ${clipDual}; it must be above 1 (Infinity turns it off)`)
  checkChoice("klEstimator", klEstimator, estimators)
  checkChoice("aggregation", aggregation, aggregations)
  checkChoice("ratio", ratio, ratios)
  return { clipLow, clipHigh, clipDual, klWeight, klEstimator, entropyWeight, aggregation, ratio, skipZeroAdvantage }
}

function checkChoice(name: string, value: string, choices: readonly string[]): void {
  if (!choices.includes(value))
    throw bad(`${name} is ${JSON.stringify(value)}; give one of ${choices.map((choice) => `"${choice}"`).join(", ")}`)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
