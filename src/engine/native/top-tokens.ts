import { isFloat32Array, isInt32Array } from "node:util/types"
import { GigpoError } from "../../errors.ts"
import { joined } from "../../joined.ts"
import type { NativeBatch, NativeScores } from "../../native.ts"
import { checkWhole } from "../check-arguments.ts"
import type { LinearLoss, LogProbsOptions, TopTokens } from "../engine.ts"
import { type Row, sampledTokens } from "../rows.ts"
import { splitByRow } from "./pack-rows.ts"

// Other tokens than the sampled ones, as the native engine takes and tells them. It looks itself whether its vocabulary has them.

/** Which ones `logProbs` is asked for. */
export function askedTop(
  rows: readonly Row[],
  top: LogProbsOptions["top"],
): Pick<NativeBatch, "topCount" | "topTokens"> {
  if (top === undefined)
    throw bad('The statistic "top" needs top: how many of the likeliest tokens at each place, or which tokens')
  if (typeof top === "number") {
    checkWhole(top, "top")
    return { topCount: top }
  }
  if (!Array.isArray(top) || top.length !== rows.length)
    throw bad(`top must be a number, or a list of tokens for each of the ${rows.length} rows`)
  const given: readonly Pick<TopTokens, "count" | "tokens">[] = top
  const count = given[0]?.count
  if (count === undefined) return {}
  for (const [index, { count: own, tokens }] of given.entries()) {
    checkWhole(own, `top[${index}].count`)
    if (own !== count)
      throw bad(`top[${index}].count is ${own}, that of the first row ${count}; give as many everywhere`)
    checkTokens(tokens, `top[${index}]`, sampledTokens([rows[index]!]), count)
  }
  return {
    topCount: count,
    topTokens: joined(
      Int32Array,
      given.map(({ tokens }) => tokens),
    ),
  }
}

/** What `logProbs` found, one entry a row. */
export async function toldTop(
  rows: readonly Row[],
  { topCount: count = 0, topTokens: given }: Pick<NativeBatch, "topCount" | "topTokens">,
  found: NativeScores,
): Promise<TopTokens[]> {
  const tokens = await splitByRow(given ?? found.topTokens, rows, count)
  const logProbs = await splitByRow(found.topLogProbs, rows, count)
  return rows.map((_, row) => ({ count, tokens: tokens[row]!, logProbs: logProbs[row]! }))
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
