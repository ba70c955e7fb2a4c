import { integer, oneOf } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Curriculum } from "./curriculum.ts"
import { expertActions } from "./expert-actions.ts"

export const tcodFields = {
  direction: oneOf(
    "forward",
    ["forward", "backward"],
    '"forward": episodes end after k steps. "backward": all but the last k actions of the expert are replayed first.',
  ),
  start: integer(1, "Steps k that the policy plays at first.", { min: 1 }),
  every: integer(10, "Iterations after which k grows by 1.", { min: 1 }),
  most: integer(undefined, "The largest k.", { min: 1, defaultText: "rollout.maxSteps" }),
}

/** Options of `tcod`. */
export type TcodOptions = OptionsOf<typeof tcodFields>

/** Steps that the policy plays after n training steps: k = min(k_start + floor(n / η), T_max). */
export function tcodSchedule(
  step: number,
  { start, every, most }: { readonly start: number; readonly every: number; readonly most: number },
): number {
  return Math.min(start + Math.floor(step / every), most)
}

/**
 * TCOD's curriculum over time (arXiv 2604.24005, section 3): the policy plays k steps at first and more as training goes on. Forward
 * these are an episode's first; backward they are its last, after the first L - k of the L actions of an expert's successful episode,
 * of which nothing is learned. Its loss is `loss.name: distillation`.
 *
 * Our reading: a training step is an iteration, the expert is the environment's own, and a task that it does not solve is played from
 * its start. Backward an episode may be as long as `rollout.maxSteps` allows, since the policy may need more steps than the expert.
 */
export function tcod(given: TcodOptions = {}): Curriculum {
  const { direction, ...options } = readOptions("tcod", given, tcodFields)
  return {
    name: "tcod",
    open(setup) {
      const { most = setup.rollout.maxSteps } = options
      const steps = (iteration: number) => tcodSchedule(iteration, { ...options, most })
      if (direction === "forward") return { begin: (_task, { moment }) => ({ maxSteps: steps(moment.iteration) }) }
      const solve = expertActions("tcod", setup)
      return {
        async begin(task, { moment }) {
          const actions = await solve(task)
          return { replay: actions?.slice(0, Math.max(actions.length - steps(moment.iteration), 0)) }
        },
      }
    },
  }
}
