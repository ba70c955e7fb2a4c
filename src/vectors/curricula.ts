import { tcodSchedule } from "../training/curriculum/tcod.ts"
import { read, type Topic } from "./topic.ts"

/**
 * Steps that the policy plays at each training step; where an expert's episode has a length L, how many of its actions are replayed
 * before, too. Expected is a list, or lists by their names.
 */
export const tcod: Topic = ({ params, inputs, expected }) => {
  const options = {
    start: read<number>(params, "k_start"),
    every: read<number>(params, "eta"),
    most: read<number>(params, "T_max"),
  }
  const k = read<readonly number[]>(inputs, "n" in inputs ? "n" : "step").map((step) => tcodSchedule(step, options))
  if (Array.isArray(expected)) return k
  const { L: length } = { ...params, ...inputs } as { readonly L?: number }
  return { k, ...(length !== undefined && { replay: k.map((played) => Math.max(length - played, 0)) }) }
}
