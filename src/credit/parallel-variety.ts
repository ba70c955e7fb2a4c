import { list, number, required, string } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"
import type { Batch } from "./estimator.ts"

const base = { above: 0, max: 1 } as const

/** Options of `parallelVariety`: factors by which repetitions lower the variety. */
export const varietyFields = {
  actionBase: number(0.8, "Factor α for each earlier occurrence of the action in its environment, in (0, 1].", base),
  pairBase: number(
    0.95,
    "Factor γ for each earlier occurrence of the action directly after the previous action in its environment, in (0, 1].",
    base,
  ),
  otherPairBase: number(
    0.95,
    "Factor β for each occurrence of this pair of actions in another environment, in (0, 1].",
    base,
  ),
  sameBase: number(
    0.8,
    "Factor ω for each action of the step that repeats another one of the same step, in (0, 1].",
    base,
  ),
  sharedActions: list(
    ["look"],
    required(string(undefined, "")),
    "Actions that do not count as repeated within a step.",
  ),
  noAction: number(0.5, "Variety of a step without any action, in (0, 1].", base),
}

/** Options of `parallelVariety`. */
export type VarietyOptions = OptionsOf<typeof varietyFields>

/**
 * Returns the variety of the actions at each step of one episode with several environments (DPEPO, arXiv 2604.24320, as in its code): (ω^d
 * + mean_e (α^a + γ^t + β^w) / 3) / 2. For environment e, a counts earlier occurrences of the action in e, and t counts earlier
 * occurrences directly after the action before it. w counts occurrences of that pair in the other environments, including those of this
 * step. d is the number of actions of the step minus the number of distinct ones. The first step has no pairs. An environment without an
 * action at a step (finished, or missing in the completion) enters neither the mean, nor d, nor the w of the others.
 *
 * @param actions action of each step and environment, [steps][environments]; an empty text is no action
 * @returns numbers in (0, 1], [steps]
 * @throws BAD_ARGUMENT for steps with different numbers of environments, or an invalid option
 */
export function parallelVariety(actions: readonly (readonly string[])[], options: VarietyOptions = {}): Float64Array {
  const settings = readOptions("parallelVariety", options, varietyFields)
  const wrong = actions.findIndex(({ length }) => length !== actions[0]!.length || length === 0)
  if (wrong >= 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `parallelVariety: step ${wrong} has ${actions[wrong]!.length} actions, the first ${actions[0]!.length}; give one for each environment.`,
    )
  const { actionBase, pairBase, otherPairBase, sameBase, sharedActions, noAction } = settings
  const environments = (actions[0] ?? []).map(() => new ActionCounts())
  return Float64Array.from(actions, (step) => {
    const acting = environments.flatMap((counts, e) => {
      const action = step[e]!.trim()
      return action === "" ? [] : { counts, action, before: counts.last }
    })
    if (acting.length === 0) return noAction
    const own = acting.map(({ counts, action, before }) => {
      const [repeats, pairs] = [counts.of(action), counts.ofPair(before, action)]
      counts.add(action)
      return actionBase ** repeats + pairBase ** pairs
    })
    const kinds = acting.map(({ counts, action, before }, e) => {
      const others = acting.reduce(
        (sum, other) => sum + (other.counts === counts ? 0 : other.counts.ofPair(before, action)),
        0,
      )
      return (own[e]! + otherPairBase ** others) / 3
    })
    const counted = acting.map(({ action }) => action).filter((action) => !sharedActions.includes(action))
    const same = counted.length - new Set(counted).size
    return (sameBase ** same + kinds.reduce((sum, one) => sum + one, 0) / kinds.length) / 2
  })
}

/** Number of occurrences of each action in an environment, and of each pair of consecutive actions. */
class ActionCounts {
  last: string | undefined
  readonly #actions = new Map<string, { count: number; readonly after: Map<string, number> }>()

  add(action: string): void {
    const before = this.last === undefined ? undefined : this.#actions.get(this.last)
    before?.after.set(action, (before.after.get(action) ?? 0) + 1)
    const known = this.#actions.get(action)
    if (known) known.count++
    else this.#actions.set(action, { count: 1, after: new Map() })
    this.last = action
  }

  of(action: string): number {
    return this.#actions.get(action)?.count ?? 0
  }

  ofPair(first: string | undefined, second: string): number {
    return first === undefined ? 0 : (this.#actions.get(first)?.after.get(second) ?? 0)
  }
}

/** Variety of the steps of a batch, [steps]. The action of a step contains one line per environment. */
export function varietyOf(batch: Batch, options: ResolvedOf<typeof varietyFields>): Float64Array {
  const { steps, episode, length } = batch
  if (steps === undefined && length > 0)
    throw new GigpoError("BAD_ARGUMENT", "dpepo compares actions; give every step its record, or its variety.")
  const episodes = new Map<number, number[]>()
  for (const [row, one] of episode.entries()) {
    const rows = episodes.get(one)
    if (rows) rows.push(row)
    else episodes.set(one, [row])
  }
  const variety = new Float64Array(length)
  for (const rows of episodes.values()) {
    const found = parallelVariety(
      rows.map((row) => steps![row]!.action.split("\n")),
      options,
    )
    for (const [step, row] of rows.entries()) variety[row] = found[step]!
  }
  return variety
}
