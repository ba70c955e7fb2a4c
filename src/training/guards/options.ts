import { number, oneOf, whole } from "../../options/field.ts"
import type { Resolved } from "../../options/table.ts"

/** How a run is kept from harm. */
export const guardFields = {
  failureShare: number(
    0.5,
    "Stop where more than this share of an iteration's episodes failed, retries included. 1: never for that alone.",
    { least: 0, most: 1 },
  ),
  nonFinite: whole(
    3,
    "Stop after so many optimizer steps in a row that had to be skipped, their loss or gradient not being finite.",
    { least: 1 },
  ),
  collapse: oneOf(
    "warn",
    ["off", "warn", "stop"],
    "What follows where one of the numbers below stands beyond its bound for `patience` iterations.",
  ),
  patience: whole(5, "Iterations in a row that a number must stand beyond its bound.", { least: 1 }),
  mostRepetition: number(
    0.5,
    "Most share of replies of which more than half repeats: of their runs of four tokens, overlapping, more than half stood " +
      "in the reply before.",
    { least: 0, most: 1 },
  ),
  leastEntropy: number(0.01, "Least mean entropy of the sampled tokens, in nats.", { least: 0 }),
  leastValid: number(0.1, "Least share of replies that the environment could read.", { least: 0, most: 1 }),
  mostConstant: number(
    0.95,
    "Most share of groups, of those with two episodes or more to learn from, whose returns are all equal.",
    { least: 0, most: 1 },
  ),
}

export type GuardOptions = Resolved<typeof guardFields>
