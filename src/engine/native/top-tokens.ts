import { isFloat32Array, isInt32Array } from "node:util/types"
import type { NativeBatch, NativeScores } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkWhole } from "../check-arguments.ts"
import type { LinearLoss, LogProbsOptions, TopTokens } from "../engine.ts"

// Other tokens than the sampled ones, as the native engine takes and tells them. It looks itself whether its vocabulary has them.

/** Tokens that `logProbs` is asked for at so many places. */
export function askedTop(places: number, top: LogProbsOptions["top"]): Pick<NativeBatch, "topCount" | "topTokens"> {
  if (top === undefined)
    throw bad('The statistic "top" needs top: how many of the most likely tokens at each place, or which tokens')
  if (typeof top === "number") {
    checkWhole(top, "top")
    return { topCount: top }
  }
  if (typeof top !== "object" || top === null || !("tokens" in top))
    throw bad("top must be a number, or count and tokens of all rows' sampled tokens")
  const { count, tokens } = top
  checkWhole(count, "top.count")
  checkTokens(tokens, "top", places, count)
  return { topCount: count, topTokens: tokens.slice() }
}

/** Tokens and log-probabilities that `logProbs` found. */
export function toldTop(
  { topCount: count = 0, topTokens: given }: Pick<NativeBatch, "topCount" | "topTokens">,
  { topTokens, topLogProbs }: NativeScores,
): TopTokens {
  return { count, tokens: given ?? topTokens, logProbs: topLogProbs }
}

/** Those that a loss has coefficients of, at so many places. */
export function coefficientsOfTop(
  { count, tokens, logProbs }: NonNullable<LinearLoss["top"]>,
  places: number,
): Pick<NativeBatch, "topCount" | "topTokens" | "topCoefficients"> {
  checkWhole(count, "top.count")
  checkTokens(tokens, "top", places, count)
  if (!isFloat32Array(logProbs) || logProbs.length !== tokens.length)
    throw bad("top.logProbs must be a Float32Array with the coefficient of each of top.tokens")
  if (!logProbs.every(Number.isFinite))
    throw new GigpoError("NON_FINITE", "The loss's top.logProbs hold a coefficient that is not finite.")
  return { topCount: count, topTokens: tokens, topCoefficients: logProbs }
}

function checkTokens(tokens: Int32Array, name: string, places: number, count: number): void {
  if (!isInt32Array(tokens) || tokens.length !== places * count)
    throw bad(`${name}.tokens must be an Int32Array of ${count} tokens for each of the ${places} sampled tokens`)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
