// `gigpo`: training, fine-tuning and evaluation of a model on an environment or an agent.

import "../check-node.mts"

export type { Agent, AgentContext, AgentExpert } from "../agents/agent.ts"
export type { ExpertCall, ExpertCompletion, ExpertMessage } from "../agents/expert-completion.ts"
export type { Estimator } from "../credit/estimator.ts"
export { gigpo } from "../credit/gigpo.ts"
export { grpo } from "../credit/grpo.ts"
export type { TrainingData } from "../data/data.ts"
export type { AgentResult } from "../endpoint/posted.ts"
export type { Trainable } from "../engine/engine.ts"
export { NativePolicy } from "../engine/native/native-policy.ts"
export type { LoraOptions, NativePolicyOptions } from "../engine/native/options.ts"
export { RemoteEngine, type RemoteEngineOptions } from "../engine/remote/remote-engine.ts"
export type {
  Environment,
  EnvironmentEpisode,
  EpisodeContext,
  Expert,
  GoldAnswer,
  Message,
  Observation,
  ParsedAction,
  PastStep,
  StepResult,
  TaskProvider,
} from "../environment/environment.ts"
export { openEnvironment } from "../environment/open-environment.ts"
export type { EnvironmentName, EnvironmentOptions, NamedEnvironment } from "../environment/registry.ts"
export type { TokenLoss } from "../loss/token-loss.ts"
export type { ModelConfig } from "../model-files/model-config.ts"
export * as fields from "../options/field.ts"
export { readOptions } from "../options/read.ts"
export {
  type RampShape,
  type Schedule,
  type Scheduled,
  type ScheduleRamp,
  scheduleValue,
  scheduleValues,
  type TrainingProgress,
} from "../options/schedule.ts"
export type { OptionField, OptionFields, OptionsOf, ResolvedOf } from "../options/table.ts"
export { type CheckOptions, checkEnvironment } from "../rollout/check-environment.ts"
export type { Candidate, Episode, EpisodeStep, Outcome, ScoredCandidate } from "../rollout/episode.ts"
export { type Rollout, type RolloutSetup, rollout, type StepLocation } from "../rollout/rollout.ts"
export type { BestEvaluation } from "../runs/best.ts"
export type { FailureReason } from "../runs/failure-reasons.ts"
export type { EvaluationReport, IterationReport } from "../runs/report.ts"
export { Run, type RunMode, type RunOptions } from "../runs/run.ts"
export {
  type InitializeModelResult,
  type InitializeModelSetup,
  initializeModel,
} from "../sft/initialize.ts"
export type { InitializeModelOptions } from "../sft/initialize-options.ts"
export type { SftOptions } from "../sft/options.ts"
export { type SftReport, type SftSetup, sft } from "../sft/sft.ts"
export type { ChatOptions } from "../tokenizer/chat-options.ts"
export { type RenderChatOptions, Tokenizer, type TokenizerOptions } from "../tokenizer/tokenizer.ts"
export { type EvaluateSetup, evaluate } from "../training/evaluate.ts"
export type { EvaluationOptions } from "../training/evaluation-options.ts"
export type { UpdateResult } from "../training/guards/step.ts"
export type { RunObserver, RunOutcome, RunStart } from "../training/observers.ts"
export type {
  EstimatorOptions,
  LossOptions,
  OptimizerOptions,
  RolloutOptions,
  TrainOptions,
} from "../training/options.ts"
export type { TrainSetup } from "../training/prepare.ts"
export type { StageProgress } from "../training/progress.ts"
export type { ReportStream } from "../training/reports.ts"
export { train } from "../training/train.ts"
export { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
export { Random } from "../util/random.ts"
export type { Json, StateArray, StateDict, Stateful } from "../util/state.ts"
