import { GigpoError } from "../errors.ts"
import { denseIds, groupByAnchor } from "./anchors.ts"
import { MAX_REWARD, type Settings } from "./options.ts"
import type { GrpoStep } from "./types.ts"

/** The steps that count, as columns [rows]. */
export interface Rows<Step> {
  readonly steps: readonly Step[]
  /** Where each row stood in the input. */
  readonly index: Int32Array
  /** Dense task ids. */
  readonly tasks: Int32Array
  /** Dense episode ids over all tasks. */
  readonly episodes: Int32Array
  /** r_t, with the penalty in it under `penaltyPlacement: "reward"`. */
  readonly rewards: Float64Array
  /** What to take off the row's own scores: the penalty under `penaltyPlacement: "row"`, else 0. */
  readonly penalties: Float64Array
}

/** Checks the steps, leaves padding out, and places the penalty of invalid actions. */
export function collectRows<Step extends GrpoStep>(input: readonly Step[], settings: Settings): Rows<Step> {
  const index = Int32Array.from(input.keys()).filter((i) => input[i]!.padding !== true)
  const steps = Array.from(index, (i) => input[i]!)
  steps.forEach((step, row) => {
    checkStep(step, index[row]!)
  })
  const inReward = settings.penaltyPlacement === "reward"
  const paid = Float64Array.from(steps, (step) => (step.valid === false ? settings.invalidActionPenalty : 0))
  const taskKeys = steps.map((step) => step.task)
  const episodeKeys = steps.map((step) => step.episode)
  return {
    steps,
    index,
    tasks: denseIds(taskKeys),
    episodes: groupByAnchor(taskKeys, episodeKeys),
    rewards: Float64Array.from(steps, (step, row) => (inReward ? step.reward - paid[row]! : step.reward)),
    penalties: inReward ? new Float64Array(steps.length) : paid,
  }
}

/** Puts row values back where their steps stood in the input. */
export function scatter<Values extends Float64Array | Int32Array>(
  values: Values,
  index: Int32Array,
  into: Values,
): Values {
  index.forEach((position, row) => {
    into[position] = values[row]!
  })
  return into
}

function checkStep(step: GrpoStep, position: number): void {
  for (const name of ["task", "episode"] as const) {
    const type = typeof step[name]
    if (type !== "string" && type !== "number")
      throw new GigpoError("BAD_ARGUMENT", `Step ${position} has a ${name} of type ${type}; give a string or a number.`)
  }
  if (Number.isFinite(step.reward) && Math.abs(step.reward) <= MAX_REWARD) return
  const where = `Step ${position} (task ${JSON.stringify(step.task)}, episode ${JSON.stringify(step.episode)})`
  throw new GigpoError(
    "NON_FINITE",
    `${where} has the reward ${String(step.reward)}; the environment must give finite numbers, at most ${MAX_REWARD} in size.`,
  )
}
