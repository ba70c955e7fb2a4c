import { integer, number } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { isScored } from "../../rollout/episode.ts"
import { takeTasks } from "../../rollout/tasks.ts"
import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import type { Curriculum } from "./curriculum.ts"
import { isSuccess } from "./expert-actions.ts"

export const bySuccessFields = {
  poolSize: integer(256, "Number of tasks in the pool.", { min: 1 }),
  learningRate: number(0.5, "Learning rate of the running success rate of a task.", { above: 0, max: 1 }),
  minWeight: number(0.05, "Minimum weight of a task, as a share of the maximum weight.", {
    above: 0,
    max: 1,
  }),
}

/** Options of `successCurriculum`. */
export type BySuccessOptions = OptionsOf<typeof bySuccessFields>

/**
 * Curriculum that prefers tasks of medium difficulty, after the self-evolving loops of Agent-World and AgentGym, whose rules are not
 * published. Implementation choice: tasks are drawn from a fixed pool of the environment's tasks by their success rate p:
 *
 *     chance ∝ floor + (1 - floor) · 4 p (1 - p);  p ← p + rate · (share of the group that succeeded - p)
 *
 * A new task has p = 1/2. A task occurs a second time in an iteration only after all tasks have occurred. The rates are saved in
 * checkpoints.
 */
export function successCurriculum(given: BySuccessOptions = {}): Curriculum {
  const { poolSize: size, learningRate, minWeight } = readOptions("successCurriculum", given, bySuccessFields)
  return {
    name: "by-success",
    open({ environment, seed }) {
      if (!environment)
        throw new GigpoError(
          "BAD_ARGUMENT",
          "The curriculum by-success needs an environment, whose tasks it draws; give an environment.",
        )
      let pool: readonly unknown[] | undefined
      let rates = new Float64Array(size).fill(0.5)
      /** Index in the pool of each task of this iteration. */
      let drawn: number[] = []
      return {
        next({ index, random }) {
          pool ??= takeTasks(environment, "train", new Random(seed).derive("curriculum"), size)
          if (index === 0) drawn = []
          const before = new Set(drawn.slice(drawn.length - (drawn.length % pool.length)))
          const chances = Array.from(pool, (_, place) =>
            before.has(place) ? 0 : minWeight + (1 - minWeight) * 4 * rates[place]! * (1 - rates[place]!),
          )
          drawn[index] = random.weighted(chances)
          return pool[drawn[index]]
        },
        rolloutEnd(groups) {
          for (const { index, episodes } of groups) {
            const scored = episodes.filter(isScored)
            if (scored.length === 0) continue
            const place = drawn[index]!
            rates[place]! += learningRate * (scored.filter(isSuccess).length / scored.length - rates[place]!)
          }
        },
        state: () => ({ arrays: { rates } }),
        restore({ arrays }) {
          rates = arrays!.rates as Float64Array<ArrayBuffer>
        },
      }
    },
  }
}
