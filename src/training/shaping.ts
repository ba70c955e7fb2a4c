import { overlongPenalty } from "../credit/overlong.ts"
import { scheduleValue, type TrainingProgress } from "../options/schedule.ts"
import { mapInPieces, type Pieces } from "../util/pace.ts"
import type { ResolvedTrainOptions } from "./options.ts"
import type { CollectedStep } from "./steps.ts"

/** Returns the steps with shaped rewards and the returns of greedy baselines, in pieces. `baselines` holds one return per group, [groups]. */
export function* shapeRewards(
  steps: readonly CollectedStep[],
  { overlong, rollout }: Pick<ResolvedTrainOptions, "overlong" | "rollout">,
  progress: TrainingProgress,
  baselines: readonly number[] | undefined,
): Pieces<readonly CollectedStep[]> {
  if (!overlong && !baselines) return steps
  const weight = overlong ? scheduleValue(overlong.weight, progress) : 0
  const penalty = ({ length }: CollectedStep) =>
    overlong ? weight * overlongPenalty(length!, rollout.maxCompletionTokens, overlong.cache) : 0
  return yield* mapInPieces(steps, (step) => ({
    ...step,
    reward: step.reward + penalty(step),
    ...(baselines && { baseline: baselines[step.task]! }),
  }))
}
