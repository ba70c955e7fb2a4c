import { integer, number, required, scheduled } from "../options/field.ts"
import { GigpoError } from "../util/errors.ts"

/** Options of the penalty for long completions. */
export const overlongFields = {
  cache: required(
    integer(
      undefined,
      "Number of tokens before the maximum completion length over which the penalty grows from 0 to its maximum, at least 1.",
      {
        min: 1,
      },
    ),
  ),
  weight: scheduled(number(1, "Maximum penalty, at least 0, in units of reward.", { min: 0 })),
}

/**
 * Returns the soft overlong punishment (DAPO, arXiv 2503.14476, Eq. 13), to be added to a reward. 0 for up to most - cache tokens, then
 * linearly decreasing to -1 at `most` tokens, and -1 beyond.
 *
 * @param length number of tokens of the completion
 * @param most maximum number of tokens of a completion
 * @param cache number of tokens over which the penalty grows, from 1 to `most`
 * @throws BAD_ARGUMENT for a cache out of that range
 */
export function overlongPenalty(length: number, most: number, cache: number): number {
  if (!(cache >= 1 && cache <= most))
    throw new GigpoError("BAD_ARGUMENT", `The cache of the overlong penalty is ${cache}; use 1 to ${most} tokens.`)
  return Math.max(Math.min((most - cache - length) / cache, 0), -1)
}
