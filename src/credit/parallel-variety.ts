import { GigpoError } from "../errors.ts"
import { list, number, required, text } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import type { Batch } from "./estimator.ts"

const base = { above: 0, most: 1 } as const

/** Options of `parallelVariety`: what is left of 1 at each repetition. */
export const varietyFields = {
  actionBase: number(0.8, "α, for an action that its environment has seen, in (0, 1].", base),
  pairBase: number(
    0.95,
    "γ, for an action after the one before it, where its environment has seen both in a row, in (0, 1].",
    base,
  ),
  otherPairBase: number(0.95, "β, for the same in another of the environments, in (0, 1].", base),
  sameBase: number(0.8, "ω, for an action that another environment gets at the same step, in (0, 1].", base),
  sharedActions: list(
    ["look"],
    required(text(undefined, "")),
    "Actions that all environments may get at the same step without being counted.",
  ),
}

export type VarietyOptions = OptionsOf<typeof varietyFields>

/**
 * How varied the actions of each step of one episode are (DPEPO, arXiv 2604.24320, as its code has it): (ω^d + mean_e (α^a + γ^t + β^w) / 3)
 * / 2, a how often environment e got this action before, t how often after the action before it, w the same in the other environments,
 * this step's among them, and d the actions of the step less those that differ. The first step has no pairs.
 *
 * @param actions of each step and environment, [steps][environments]; every step has one for each environment
 * @returns in (0, 1], [steps]
 * @throws BAD_ARGUMENT for steps of different numbers of actions, or an option that has no meaning
 */
export function parallelVariety(actions: readonly (readonly string[])[], options: VarietyOptions = {}): Float64Array {
  const settings = readOptions("parallelVariety", options, varietyFields)
  const wrong = actions.findIndex(({ length }) => length !== actions[0]!.length || length === 0)
  if (wrong >= 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `parallelVariety: step ${wrong} has ${actions[wrong]!.length} actions, the first ${actions[0]!.length}; give one for each environment.`,
    )
  const { actionBase, pairBase, otherPairBase, sameBase, sharedActions } = settings
  const clean = actions.map((step) => step.map((action) => action.trim()))
  return Float64Array.from(clean, (now, step) => {
    const kinds = now.map((action, e) => {
      const seen = clean.slice(0, step).map((then) => then[e]!)
      const before = seen.at(-1)
      const pairs = (other: number, until: number) =>
        clean.slice(1, until).filter((then, i) => clean[i]![other] === before && then[other] === action).length
      const others = now.reduce((sum, _, other) => sum + (other === e ? 0 : pairs(other, step + 1)), 0)
      const repeats = seen.filter((one) => one === action).length
      return (actionBase ** repeats + pairBase ** pairs(e, step) + otherPairBase ** others) / 3
    })
    const counted = now.filter((action) => !sharedActions.includes(action))
    const same = counted.length - new Set(counted).size
    return (sameBase ** same + kinds.reduce((sum, one) => sum + one, 0) / kinds.length) / 2
  })
}

/** The same of all episodes of a batch, whose actions hold a line for each environment, [steps]. */
export function varietyOf(batch: Batch, options: Resolved<typeof varietyFields>): Float64Array {
  const { steps, episode, length } = batch
  if (steps === undefined && length > 0)
    throw new GigpoError("BAD_ARGUMENT", "dpepo compares actions; give every step its record, or its variety.")
  const episodes = new Map<number, number[]>()
  for (const [row, one] of episode.entries()) episodes.set(one, [...(episodes.get(one) ?? []), row])
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
