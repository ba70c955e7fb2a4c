import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { gigpoFields } from "./options.ts"
import type { GigpoParts } from "./parts.ts"
import { stepsBefore } from "./turns.ts"

/**
 * One level of step groups, the nodes of a tree: the episodes of a task are one where they begin alike, so that steps are compared
 * which came to the same state by the same states.
 */
export const treeLevels: GigpoParts["levels"] = ({ episode, anchorGroups, length }) => {
  const nodes = new Map<number, number>()
  const ids = new Int32Array(length)
  for (const [row, before] of stepsBefore(episode).entries()) {
    // One number a pair of parent and state, exact: both ids are below the number of steps. States are of one task each.
    const key = ((before < 0 ? -1 : ids[before]!) + 1) * length + anchorGroups[row]!
    const node = nodes.get(key) ?? nodes.size
    nodes.set(key, node)
    ids[row] = node
  }
  return [{ ids }]
}

/** Options of `gigpoTree`: how episodes merge is not one of them. */
export const gigpoTreeFields = { ...without(gigpoFields, "similarity", "stepScope") }

/** Options of `gigpoTree`. */
export type GigpoTreeOptions = OptionsOf<typeof gigpoTreeFields>

/**
 * GiGPO over the nodes of a task's tree of episodes (after T-STAR, arXiv 2604.07165: reason in chains, learn in trees): A = A^E + ω A^S, A^S
 * among the steps of one node, `treeLevels`. What that paper does with the tree beyond this (its advantages, grafted thoughts) is not
 * published to the number, so that merging by equal beginnings, and GiGPO on top, are our reading.
 *
 * @throws BAD_ARGUMENT for an invalid option
 */
export const gigpoTree = defineEstimator({
  name: "gigpo-tree",
  fields: gigpoTreeFields,
  about: {
    file: "src/credit/tree.ts",
    system: "T-STAR (Reason in Chains, Learn in Trees)",
    origin: "successor",
    changes: ["keys", "rollout"],
    equation: "A = A^E + ω A^S among the steps at one node of the tree into which episodes merge that begin alike",
    source: "arXiv 2604.07165, abstract",
    standing: "reading",
    note: "Merging by equal beginnings, GiGPO on top; grafted thoughts are not defined in public.",
  },
  make(options: GigpoTreeOptions = {}): Estimator<StepCredit> {
    return gigpoVariant("gigpo-tree", options, gigpoTreeFields, "wanted", (settings) => ({
      ...settings,
      levels: treeLevels,
    }))
  },
})
