import { integer, number, oneOf } from "../../options/field.ts"
import type { ResolvedOf } from "../../options/table.ts"
import { minEntropy } from "./default-bounds.ts"

/** Options of the guards of a run. */
export const guardFields = {
  maxFailed: number(
    0.5,
    "Maximum share of failed episodes in an iteration, after retries; the run stops above it. 1 turns it off.",
    { min: 0, max: 1 },
  ),
  maxNonFinite: integer(
    3,
    "Number of optimizer steps in a row, skipped for a loss or gradient that is not finite, after which the run stops.",
    { min: 1 },
  ),
  collapse: oneOf(
    "warn",
    ["off", "warn", "stop"],
    "On collapse (repetition, low entropy, few valid actions, equal returns for `patience` iterations): ignore (off), warn, or stop the run.",
  ),
  patience: integer(5, "Iterations in a row that a metric must be beyond its bound.", { min: 1 }),
  maxRepetition: number(
    0.5,
    "Maximum share of repetitive completions (guard/repetition). A completion is repetitive where more than half of its 4-grams of tokens " +
      "occur earlier in it.",
    { min: 0, max: 1 },
  ),
  minEntropy: number(minEntropy, "Minimum mean entropy of the sampled tokens, in nats (policy/entropy).", { min: 0 }),
  minValid: number(0.1, "Minimum share of completions with a valid action (action/valid).", { min: 0, max: 1 }),
  lostSuccess: number(
    0.01,
    "Probability below which a series of episodes without success counts as lost success (guard/episodes-since-success), given the success rate before. " +
      "`patience` does not apply. 0 turns it off.",
    { min: 0, below: 1 },
  ),
  maxConstant: number(
    0.95,
    "Maximum share of groups whose returns are all equal, among groups with at least two scored episodes (guard/constant).",
    { min: 0, max: 1 },
  ),
}

export type GuardOptions = ResolvedOf<typeof guardFields>
