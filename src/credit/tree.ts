import { without } from "../options/fixed.ts"
import type { OptionsOf } from "../options/table.ts"
import { defineEstimator } from "./define-estimator.ts"
import type { Estimator, StepCredit } from "./estimator.ts"
import { gigpoVariant } from "./gigpo-variant.ts"
import { gigpoFields } from "./options.ts"
import type { GigpoParts } from "./parts.ts"
import { stepsBefore } from "./turns.ts"

/**
 * Level of step groups by the tree of a task's episodes. Episodes with equal beginnings share nodes, so steps are compared that reached
 * the same state through the same states.
 */
export const treeLevels: GigpoParts["levels"] = ({ episode, anchorGroups, length }) => {
  const nodes = new Map<number, number>()
  const ids = new Int32Array(length)
  for (const [row, before] of stepsBefore(episode).entries()) {
    // Numeric id of the pair of parent and state. Exact, since both ids are below the number of steps. Each state id belongs to one task.
    const key = ((before < 0 ? -1 : ids[before]!) + 1) * length + anchorGroups[row]!
    const node = nodes.get(key) ?? nodes.size
    nodes.set(key, node)
    ids[row] = node
  }
  return [{ ids }]
}

/** Options of `gigpoTree`. The merging of episodes has no options. */
export const gigpoTreeFields = { ...without(gigpoFields, "similarity", "stepScope") }

/** Options of `gigpoTree`. */
export type GigpoTreeOptions = OptionsOf<typeof gigpoTreeFields>

/**
 * GiGPO over the nodes of a task's tree of episodes (after T-STAR, arXiv 2604.07165): A = A^E + ω A^S, with A^S among the steps of one
 * node (`treeLevels`). The details of that paper's further use of the tree (its advantages, grafted thoughts) are not published. Merging
 * by equal beginnings with GiGPO on top is our interpretation.
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
    changes: ["step-groups", "rollout"],
    equation: "A = A^E + ω A^S, where A^S compares the steps at a node of the tree of episodes with common starts",
    source: "arXiv 2604.07165, abstract",
    status: "interpreted",
    note: "Episodes are merged by equal starts, with GiGPO's advantages. Grafted thoughts are not documented.",
  },
  make(options: GigpoTreeOptions = {}): Estimator<StepCredit> {
    return gigpoVariant("gigpo-tree", options, gigpoTreeFields, "wanted", (settings) => ({
      ...settings,
      levels: treeLevels,
    }))
  },
})
