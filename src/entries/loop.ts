// `gigpo/loop`: parts of a training iteration, for a custom training loop or agent loop.

import "../check-node.mts"

export { type EpisodeSetup, runEpisode, streamEpisode } from "../rollout/episode.ts"
export { type ExpertSetup, type ExpertStep, streamExpert } from "../rollout/expert.ts"
export type { TaskSource } from "../rollout/hooks.ts"
export type {
  AgentLoop,
  AgentLoopContext,
  EpisodeEnd,
  SampledAction,
  SampleOptions,
  StepInput,
} from "../rollout/play.ts"
export { environmentTasks, takeTasks } from "../rollout/tasks.ts"
export { type AccumulateOptions, accumulateGradients } from "../training/accumulate.ts"
export { replayFailure } from "../training/guards/failure.ts"
export { groupByTask, layOutSequences, miniBatches, toSequences } from "../training/rows.ts"
export { type CollectedStep, collectSteps } from "../training/steps.ts"
