import { integer, number } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { RolloutHooks } from "../hooks.ts"
import { entropyOf, vocabularyShare } from "./entropy-of.ts"

export const arpoFields = {
  weight: number(0.5, "Weight of the change of entropy in the branching probability.", { min: 0 }),
  threshold: number(0.5, "Branching probability where the entropy has not changed.", { min: 0, max: 1 }),
}

/** Options of `entropyBranching`. */
export const entropyBranchingFields = {
  ...arpoFields,
  tokens: integer(20, "Number of first tokens of a completion over which the entropy is averaged.", { min: 1 }),
  branchingFactor: integer(2, "Number of episodes that continue from a branching state, including the original one.", {
    min: 2,
  }),
}

/** Options of `entropyBranching`. */
export type EntropyBranchingOptions = OptionsOf<typeof entropyBranchingFields>

/**
 * Decides whether an episode branches (ARPO, arXiv 2507.19849): u - w (H - H₀) ≤ θ, with entropies as shares of log V.
 *
 * @param uniform - random number u in [0, 1).
 * @param entropy - entropy H of the first tokens after a tool result.
 * @param initial - entropy H₀ of the first tokens of the episode.
 */
export function arpoBranches(
  uniform: number,
  entropy: number,
  initial: number,
  options: OptionsOf<typeof arpoFields> = {},
): boolean {
  const { weight, threshold } = readOptions("arpoBranches", options, arpoFields)
  return uniform - weight * (entropy - initial) <= threshold
}

/**
 * Hook that branches episodes where the entropy of the policy rises after an observation (ARPO, arXiv 2507.19849): at all turns but the first, where
 * u - weight (H - H₀) ≤ `threshold`, with u uniform in [0, 1), and H and H₀ the entropies of this and of the first completion divided by log of the
 * vocabulary size. `rollout.maxBranches` bounds the number of branches, like the beam size in the authors' code. Implementation choice: an
 * observation counts as a tool result.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option, and during the rollout for an engine that does not report entropies.
 */
export function entropyBranching(options: EntropyBranchingOptions = {}): Pick<RolloutHooks, "onTurn"> {
  const settings = readOptions("entropyBranching", options, entropyBranchingFields)
  const { tokens, branchingFactor, weight, threshold } = settings
  return {
    onTurn({ index, completion, completions, vocabularySize }, { random }) {
      if (index === 0) return { kind: "accept" }
      const [now, initial] = [completion, completions[0]!].map((completion) =>
        vocabularyShare(entropyOf("entropyBranching", completion, tokens), vocabularySize),
      )
      const branches = arpoBranches(random.uniform(), now!, initial!, { weight, threshold })
      return branches ? { kind: "branch", branchingFactor } : { kind: "accept" }
    },
  }
}
