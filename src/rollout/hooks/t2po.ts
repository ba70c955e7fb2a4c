import { boolean, string } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { GigpoError } from "../../util/errors.ts"
import type { RolloutHooks, SampledReply, TurnContext } from "../hooks.ts"
import { entropiesOf } from "./entropy-of.ts"
import { goOn, openThought } from "./forced-end.ts"
import { t2poCut, t2poCutFields, t2poResampleFields, t2poResamples, t2poScore, t2poScoreFields } from "./t2po-score.ts"

/** Options of `t2po`. */
export const t2poFields = {
  ...t2poScoreFields,
  ...t2poCutFields,
  ...t2poResampleFields,
  opens: string("<think>", "What opens a thought in a reply."),
  opened: boolean(false, "Prompts open a thought, so that every reply begins in one."),
  closes: string("</think>", "What closes a thought, and is put there where one is ended."),
}

/** Options of `t2po`. */
export type T2poOptions = OptionsOf<typeof t2poFields>

/**
 * T²PO's rollouts (arXiv 2605.02178): a turn that is nearly as sure as the turn before explores nothing and is sampled again
 * (`t2poResamples`), a thought that no longer moves, or is long, is ended (`t2poCut`): its end is put there and the reply goes on from it in
 * a second request. Tokens put there are part of the reply, without weight in the policy's loss. Underneath is GiGPO. Our reading: a
 * reply has one thought, the first; a turn's score is the mean over the tokens that were sampled; a reply that has no room left for
 * the end stays as it is.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning, or an engine that reports no entropies or no most likely tokens
 */
export function t2po(options: T2poOptions = {}): Pick<RolloutHooks, "sample" | "onTurn"> {
  const { topWeight, entropyWeight, flat, change, thought, near, tries, ...words } = readOptions(
    "t2po",
    options,
    t2poFields,
  )
  const tags = { opens: words.opened ? "" : words.opens, closes: words.closes }
  const scores = (reply: SampledReply, size: number) =>
    t2poScore(mostLikelyOf(reply), entropiesOf("t2po", reply.entropies), size, { topWeight, entropyWeight })
  const turnScore = (reply: SampledReply, { vocabularySize }: Pick<TurnContext, "vocabularySize">) => {
    const sampled = scores(reply, vocabularySize).filter((_, t) => reply.forced?.[t] !== 1)
    return sampled.reduce((sum, score) => sum + score, 0) / sampled.length
  }
  return {
    async sample({ request, tokenizer, vocabularySize, sample }) {
      const seen: number[] = []
      let next = thought // tokens by which a thought that is still open may be that long
      const reply = await sample({
        ...request,
        topTokens: 1,
        onTokens(tokens) {
          seen.push(...tokens)
          if (seen.length < next) return false
          const open = openThought(tokenizer, Int32Array.from(seen), tags)
          const length = open ? open.end - open.start : 0
          if (open && !open.closed && length >= thought) return true
          next = open?.closed ? Number.POSITIVE_INFINITY : seen.length + thought - length
          return false
        },
      })
      const open = openThought(tokenizer, reply.tokens, tags)
      if (!open) return reply
      const isOver = open.closed || request.stopTokens.includes(reply.tokens.at(-1)!)
      const cut = t2poCut(scores(reply, vocabularySize).subarray(open.start, open.end), { flat, change, thought })
      if (cut === undefined || (isOver && open.start + cut >= open.end)) return reply
      return await goOn(reply, open.start + cut, tokenizer.encode(tags.closes), { ...request, topTokens: 1 }, sample)
    },
    onTurn(turn) {
      const { completion, earlier, attempt } = turn
      const before = earlier.at(-1)
      const last = before && turnScore(before, turn)
      const again = t2poResamples(turnScore(completion, turn), last, attempt, { near, tries })
      return { kind: again ? "resample" : "accept" }
    },
  }
}

/** Log-probability of the most likely token at each place. */
function mostLikelyOf({ top, tokens }: SampledReply): Float64Array {
  if (top?.length === tokens.length) return Float64Array.from(top, ([first]) => first!.logProb)
  throw new GigpoError(
    "BAD_ARGUMENT",
    "t2po reads the most likely tokens' log-probabilities (topTokens), which this engine does not report; take another engine, or leave the hook off.",
  )
}
