import { rampFields, whole } from "../../options/field.ts"
import { without } from "../../options/fixed.ts"
import { readOptions } from "../../options/read.ts"
import { at } from "../../options/schedule.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Curriculum } from "./curriculum.ts"

export const horizonFields = {
  from: whole(5, "Steps of an episode at first.", { least: 1 }),
  to: whole(undefined, "Steps that it comes to.", { least: 1, otherwise: "rollout.maxSteps" }),
  ...without(rampFields, "from", "to"),
}

export type HorizonOptions = OptionsOf<typeof horizonFields>

/**
 * A horizon that grows: training on short episodes first is stabler and carries over to long ones (the empirical study of horizon
 * length; AgentGym's scaling of interactions). The ramp and its rounding to whole steps are our reading.
 */
export function horizon(given: HorizonOptions = {}): Curriculum {
  const ramp = readOptions("horizon", given, horizonFields)
  return {
    name: "horizon",
    open({ rollout }) {
      const { to = rollout.maxSteps } = ramp
      return { begin: (_task, { moment }) => ({ maxSteps: Math.round(at({ ...ramp, to }, moment)) }) }
    },
  }
}
