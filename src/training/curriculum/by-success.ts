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
  pool: integer(256, "Tasks that are drawn from.", { min: 1 }),
  rate: number(0.5, "How fast a task's rate of success follows what was played.", { above: 0, max: 1 }),
  floor: number(0.05, "Share of the chance that every task has, however well or badly it is played.", {
    above: 0,
    max: 1,
  }),
}

/** Options of `bySuccess`. */
export type BySuccessOptions = OptionsOf<typeof bySuccessFields>

/**
 * Tasks drawn by how they are played, after the self-evolving loops of Agent-World and AgentGym, whose rules are not defined in public:
 * what the policy can nearly do comes up most. Our reading: of a fixed pool of the environment's tasks, with rate of success p,
 *
 *     chance ∝ floor + (1 - floor) · 4 p (1 - p);  p ← p + rate · (share of the group that succeeded - p)
 *
 * A task that was not played yet has p = 1/2. None comes twice in an iteration until all came. The rates are the run's state.
 */
export function bySuccess(given: BySuccessOptions = {}): Curriculum {
  const { pool: size, rate, floor } = readOptions("bySuccess", given, bySuccessFields)
  return {
    name: "by-success",
    open({ environment, seed }) {
      if (!environment)
        throw new GigpoError(
          "BAD_ARGUMENT",
          "The curriculum by-success draws an environment's tasks: give an environment.",
        )
      let pool: readonly unknown[] | undefined
      let rates = new Float64Array(size).fill(0.5)
      /** Places in the pool of the tasks of this iteration, by their numbers. */
      let drawn: number[] = []
      return {
        next({ index, random }) {
          pool ??= takeTasks(environment, "train", new Random(seed).fork("curriculum"), size)
          if (index === 0) drawn = []
          const before = new Set(drawn.slice(drawn.length - (drawn.length % pool.length)))
          const chances = Array.from(pool, (_, place) =>
            before.has(place) ? 0 : floor + (1 - floor) * 4 * rates[place]! * (1 - rates[place]!),
          )
          drawn[index] = random.weighted(chances)
          return pool[drawn[index]]
        },
        played(groups) {
          for (const { index, episodes } of groups) {
            const scored = episodes.filter(isScored)
            if (scored.length === 0) continue
            const place = drawn[index]!
            rates[place]! += rate * (scored.filter(isSuccess).length / scored.length - rates[place]!)
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
