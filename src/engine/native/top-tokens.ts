import { isFloat32Array, isInt32Array } from "node:util/types"
import type { NativeBatch, NativeScores } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import { checkWhole } from "../check-arguments.ts"
import type { LinearLoss, LogProbsOptions, TopTokens } from "../engine.ts"

// Conversion of the statistic "top" (tokens other than the sampled ones) to and from the native engine, which checks the token ids.

/** Converts the option `top` of `logProbs` for a number of sampled tokens. Throws `BAD_ARGUMENT`. */
export function topTokenColumns(
  places: number,
  top: LogProbsOptions["top"],
): Pick<NativeBatch, "topCount" | "topTokens"> {
  if (top === undefined)
    throw bad(
      'The statistic "top" needs the option top: the number of most likely tokens per position, or given tokens',
    )
  if (typeof top === "number") {
    checkWhole(top, "top")
    return { topCount: top }
  }
  if (typeof top !== "object" || top === null || !("tokens" in top))
    throw bad("top must be a number, or an object with count and tokens")
  const { count, tokens } = top
  checkWhole(count, "top.count")
  checkTokens(tokens, "top", places, count)
  return { topCount: count, topTokens: tokens.slice() }
}

/** Converts the result of `logProbs`. */
export function topTokensOf(
  { topCount: count = 0, topTokens: given }: Pick<NativeBatch, "topCount" | "topTokens">,
  { topTokens, topLogProbs }: NativeScores,
): TopTokens {
  return { count, tokens: given ?? topTokens, logProbs: topLogProbs }
}

/** Converts the coefficients of a linear loss for a number of sampled tokens. Throws `BAD_ARGUMENT` and `NON_FINITE`. */
export function coefficientsOfTop(
  { count, tokens, logProbs }: NonNullable<LinearLoss["top"]>,
  places: number,
): Pick<NativeBatch, "topCount" | "topTokens" | "topCoefficients"> {
  checkWhole(count, "top.count")
  checkTokens(tokens, "top", places, count)
  if (!isFloat32Array(logProbs) || logProbs.length !== tokens.length)
    throw bad("top.logProbs must be a Float32Array with one coefficient for each of top.tokens")
  if (!logProbs.every(Number.isFinite))
    throw new GigpoError("NON_FINITE", "The loss's top.logProbs contain a number that is not finite.")
  return { topCount: count, topTokens: tokens, topCoefficients: logProbs }
}

function checkTokens(tokens: Int32Array, name: string, places: number, count: number): void {
  if (!isInt32Array(tokens) || tokens.length !== places * count)
    throw bad(`${name}.tokens must be an Int32Array of ${count} tokens for each of the ${places} sampled tokens`)
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
