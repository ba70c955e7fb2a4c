import { inspect, types } from "node:util"
import type { Completion, SampleRequest } from "../engine/engine.ts"
import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
import { isColumn, tokenOutside } from "./check-step.ts"

/** Checks a completion of an engine or a hook. */
export function checkCompletion<Sampled extends Completion & { readonly forced?: Uint8Array }>(
  completion: Sampled,
  { maxTokens }: Pick<SampleRequest, "maxTokens">,
  vocabularySize: number,
  who = "The policy's sample()",
): Sampled {
  const wrong = (rule: string, code: GigpoErrorCode = "BAD_ARGUMENT") => new GigpoError(code, `${who} ${rule}.`)
  if (typeof completion !== "object" || completion === null)
    throw wrong(`gave ${inspect(completion)}; give { tokens, logProbs, finishReason }`)
  const { tokens, logProbs, entropies, forced, finishReason } = completion
  if (!types.isInt32Array(tokens)) throw wrong("gave no tokens; give the sampled ids as an Int32Array")
  if (tokens.length === 0 || tokens.length > maxTokens)
    throw wrong(`gave ${tokens.length} tokens; give at least 1 and at most maxTokens, which was ${maxTokens}`)
  const outside = tokenOutside(tokens, vocabularySize)
  if (outside !== undefined)
    throw wrong(`gave token ${outside}, outside its vocabulary of ${vocabularySize} (vocabularySize)`)
  if (!types.isFloat32Array(logProbs) || logProbs.length !== tokens.length) {
    const found = types.isFloat32Array(logProbs) ? `${logProbs.length} log-probabilities` : "no log-probabilities"
    throw wrong(`gave ${found} for ${tokens.length} tokens; give logProbs, a Float32Array of one number per token`)
  }
  const infinite = logProbs.find((value) => !Number.isFinite(value))
  if (infinite !== undefined)
    throw wrong(`gave the log-probability ${infinite}; log-probabilities of sampled tokens are finite`, "NON_FINITE")
  if (entropies !== undefined && !isColumn(entropies, tokens.length))
    throw wrong(
      `gave invalid entropies; give a Float32Array of ${tokens.length} finite numbers, one per token, or none`,
    )
  if (forced !== undefined && !(types.isUint8Array(forced) && forced.length === tokens.length))
    throw wrong(`gave a forced that is not a Uint8Array of ${tokens.length} numbers, one per token`)
  if (finishReason !== "stop" && finishReason !== "length")
    throw wrong(`gave the finishReason ${inspect(finishReason)}; give "stop" or "length"`)
  return completion
}
