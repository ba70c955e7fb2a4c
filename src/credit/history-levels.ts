import { integer } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import { denseIds } from "../util/dense-ids.ts"
import type { GigpoParts } from "./parts.ts"
import { stepsBefore } from "./turns.ts"

const fields = { history: integer(2, "Number of earlier states.", { min: 0 }) }

/**
 * Returns levels of step groups by shared history (HGPO, arXiv 2602.22817). Level k groups the steps of one task with the same last k
 * states, including the present one, k = 1 … history + 1. A step with fewer than k states so far has no group at level k. The cost is
 * linear: the last k states are equal if the present states and the last k - 1 states of the previous steps are equal.
 *
 * @throws BAD_ARGUMENT unless `history` is an integer of at least 0
 */
export function historyLevels(history: number): GigpoParts["levels"] {
  readOptions("historyLevels", { history }, fields)
  return ({ episode, anchorGroups }) => {
    const before = stepsBefore(episode)
    const levels = [{ ids: anchorGroups }]
    for (let k = 2; k <= history + 1; k++) {
      const shorter = levels.at(-1)!.ids
      const led = before.map((row) => (row < 0 ? -1 : shorter[row]!))
      // Numeric id of the pair. Exact, since both ids are below the number of steps.
      const ids = denseIds(Float64Array.from(led, (id, row) => (id < 0 ? -1 : id * led.length + anchorGroups[row]!)))
      levels.push({ ids: ids.map((id, row) => (led[row]! < 0 ? -1 : id)) })
    }
    return levels
  }
}
