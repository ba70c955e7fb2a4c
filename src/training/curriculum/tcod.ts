import { integer, oneOf } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Curriculum } from "./curriculum.ts"
import { expertActions } from "./expert-actions.ts"

export const tcodFields = {
  direction: oneOf(
    "forward",
    ["forward", "backward"],
    "forward: episodes end after k steps. backward: all actions of the expert but the last k are replayed first.",
  ),
  start: integer(1, "Initial number of steps k that the policy plays.", { min: 1 }),
  every: integer(10, "Iterations between increments of k.", { min: 1 }),
  maxSteps: integer(undefined, "Maximum k.", { min: 1, defaultText: "rollout.maxSteps" }),
}

/** Options of `tcodCurriculum`. */
export type TcodOptions = OptionsOf<typeof tcodFields>

/** Returns the number of steps that the policy plays after n training steps: k = min(k_start + floor(n / η), T_max). */
export function tcodSchedule(
  step: number,
  { start, every, maxSteps }: { readonly start: number; readonly every: number; readonly maxSteps: number },
): number {
  return Math.min(start + Math.floor(step / every), maxSteps)
}

/**
 * Temporal curriculum of TCOD (arXiv 2604.24005, section 3). The policy plays k steps of an episode, and k grows during training. With
 * direction "forward" these are the first steps. With "backward" they are the last steps: the first L - k of the L actions of an expert's
 * successful episode are replayed and not trained on. Use the loss `distillation` with this curriculum.
 *
 * Implementation choices: a training step is an iteration, the expert is that of the environment, and a task that the expert does not solve
 * is played from its start. Backward, episodes may be as long as `rollout.maxSteps`, since the policy may need more steps than the expert.
 */
export function tcodCurriculum(given: TcodOptions = {}): Curriculum {
  const { direction, ...options } = readOptions("tcodCurriculum", given, tcodFields)
  return {
    name: "tcod",
    open(setup) {
      const { maxSteps = setup.rollout.maxSteps } = options
      const steps = (iteration: number) => tcodSchedule(iteration, { ...options, maxSteps })
      if (direction === "forward") return { start: (_task, { progress }) => ({ maxSteps: steps(progress.iteration) }) }
      const solve = expertActions("The curriculum tcod", setup)
      return {
        async start(task, { progress }) {
          const actions = await solve(task)
          return { replay: actions?.slice(0, Math.max(actions.length - steps(progress.iteration), 0)) }
        },
      }
    },
  }
}
