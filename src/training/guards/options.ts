import { integer, number, oneOf } from "../../options/field.ts"
import type { Resolved } from "../../options/table.ts"

/** How a run is kept from harm. */
export const guardFields = {
  failureShare: number(
    0.5,
    "Stop where more than this share of an iteration's episodes failed, retries included. 1: never for that alone.",
    { min: 0, max: 1 },
  ),
  nonFinite: integer(
    3,
    "Stop after so many optimizer steps in a row that had to be skipped, their loss or gradient not being finite.",
    { min: 1 },
  ),
  collapse: oneOf(
    "warn",
    ["off", "warn", "stop"],
    "What follows where one of the numbers below stands beyond its bound for `patience` iterations.",
  ),
  patience: integer(5, "Iterations in a row that a number must stand beyond its bound.", { min: 1 }),
  maxRepetition: number(
    0.5,
    "Most share of replies of which more than half repeats: of their runs of four tokens, overlapping, more than half stood " +
      "in the reply before.",
    { min: 0, max: 1 },
  ),
  minEntropy: number(0.01, "Least mean entropy of the sampled tokens, in nats.", { min: 0 }),
  minValid: number(0.1, "Least share of replies that the environment could read.", { min: 0, max: 1 }),
  lostSuccess: number(
    0.01,
    "Warn where no episode succeeds any more: where a streak without success would be less likely than this, by the share that " +
      "succeeded before. `patience` does not count here. 0: never.",
    { min: 0, below: 1 },
  ),
  maxConstant: number(
    0.95,
    "Most share of groups, of those with two episodes or more to learn from, whose returns are all equal.",
    { min: 0, max: 1 },
  ),
}

export type GuardOptions = Resolved<typeof guardFields>
