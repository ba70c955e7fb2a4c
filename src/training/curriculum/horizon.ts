import { integer, rampFields } from "../../options/field.ts"
import { without } from "../../options/fixed.ts"
import { readOptions } from "../../options/read.ts"
import { scheduleValue } from "../../options/schedule.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Curriculum } from "./curriculum.ts"

export const horizonFields = {
  from: integer(5, "Maximum steps of an episode at the start.", { min: 1 }),
  to: integer(undefined, "Maximum steps of an episode at the end.", { min: 1, defaultText: "rollout.maxSteps" }),
  ...without(rampFields, "from", "to"),
}

/** Options of `horizonCurriculum`. */
export type HorizonOptions = OptionsOf<typeof horizonFields>

/**
 * Curriculum that raises the maximum number of steps. Training on short episodes first is more stable and transfers to long episodes (the
 * empirical study of horizon length; AgentGym's scaling of interactions). Implementation choices: the ramp, and its rounding to integers.
 */
export function horizonCurriculum(given: HorizonOptions = {}): Curriculum {
  const ramp = readOptions("horizonCurriculum", given, horizonFields)
  return {
    name: "horizon",
    open({ rollout }) {
      const { to = rollout.maxSteps } = ramp
      return { start: (_task, { progress }) => ({ maxSteps: Math.round(scheduleValue({ ...ramp, to }, progress)) }) }
    },
  }
}
