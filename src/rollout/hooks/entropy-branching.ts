import { integer, number } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { RolloutHooks } from "../hooks.ts"
import { entropyOf, vocabularyShare } from "./entropy-of.ts"

export const arpoFields = {
  weight: number(0.5, "How much a rise of the entropy adds to the chance of a branch.", { min: 0 }),
  threshold: number(0.5, "The chance of a branch where the entropy has not changed, in [0, 1].", { min: 0, max: 1 }),
}

/** Options of `entropyBranching`. */
export const entropyBranchingFields = {
  ...arpoFields,
  tokens: integer(20, "First tokens of a reply over which its entropy is the mean.", { min: 1 }),
  into: integer(2, "Episodes that go on from a state that is branched at.", { min: 2 }),
}

/** Options of `entropyBranching`. */
export type EntropyBranchingOptions = OptionsOf<typeof entropyBranchingFields>

/**
 * Whether an episode branches (ARPO, arXiv 2507.19849): u - w (H - H₀) ≤ θ, of entropies as shares of log V.
 *
 * @param uniform u, in [0, 1)
 * @param entropy H, of the first tokens after a tool's result
 * @param initial H₀, of the first tokens of the episode
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
 * Branches where the policy grows unsure of how to go on from what it observed: at every turn but an episode's first, by `arpoBranches`.
 * `rollout.maxForks` bounds how many branches an episode has, as a beam does in the authors' code; that an observation counts as a tool's
 * result is our reading.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning, or an engine that tells no entropies
 */
export function entropyBranching(options: EntropyBranchingOptions = {}): Pick<RolloutHooks, "onTurn"> {
  const settings = readOptions("entropyBranching", options, entropyBranchingFields)
  const { tokens, into, weight, threshold } = settings
  return {
    onTurn({ index, completion, earlier, vocabularySize }, { random }) {
      if (index === 0) return { kind: "accept" }
      const [now, initial] = [completion, earlier[0]!].map((reply) =>
        vocabularyShare(entropyOf("entropyBranching", reply, tokens), vocabularySize),
      )
      const branches = arpoBranches(random.uniform(), now!, initial!, { weight, threshold })
      return branches ? { kind: "fork", into } : { kind: "accept" }
    },
  }
}
