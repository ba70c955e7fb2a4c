// The public names, one by one.

// Credit: estimators, what they are made of, and their pure functions on plain arrays; no engine needed.
export { groupByAnchor, groupBySimilarity } from "./credit/anchors.ts"
export { type Amendment, amendCredit } from "./credit/as-estimator.ts"
export { type BatchStep, batchOf } from "./credit/batch.ts"
export type { Batch, Credit, Estimator, EstimatorContext, Need, StepCredit, StepRecord } from "./credit/estimator.ts"
export { gigpo, gigpoAdvantages } from "./credit/gigpo.ts"
export { grpo, grpoAdvantages, rloo } from "./credit/grpo.ts"
export { type Normalizer, type NormalizerOptions, normalizer } from "./credit/normalizer.ts"
export { anchorLevels, discountedReturn, type GigpoParts, type StepLevel, similarityLevels } from "./credit/parts.ts"
export { presets } from "./credit/presets.ts"
export { discountedReturns } from "./credit/returns.ts"
export { similarityRatio } from "./credit/similarity.ts"
export type {
  GigpoDiagnostics,
  GigpoOptions,
  GigpoResult,
  GigpoStep,
  GrpoDiagnostics,
  GrpoOptions,
  GrpoResult,
  GrpoStep,
  Normalization,
  SimilarityOptions,
} from "./credit/types.ts"
// The three kernels on their own, and the machine.
export { type DeviceReport, deviceReport } from "./device.ts"
export type {
  AdamWStep,
  Aggregation,
  ClippedSurrogate,
  Completion,
  Critic,
  CrossEntropy,
  LinearLoss,
  LogProbsOptions,
  LossReport,
  ModelStore,
  NativeLoss,
  RowStatistics,
  RunPlan,
  SampleRequest,
  Sampler,
  Statistic,
  StepReport,
  Trainable,
  Unit,
} from "./engine/engine.ts"
export { NativePolicy } from "./engine/native/native-policy.ts"
export { type LoraOptions, type MemoryPlan, memoryPlan, type NativePolicyOptions } from "./engine/native/options.ts"
export {
  type Column,
  type Row,
  type Span,
  type SpanCredit,
  sampledPositions,
  sampledTokens,
  stepRow,
} from "./engine/rows.ts"
export { type AgentOptions, readAction, rememberTurns } from "./environment/agent.ts"
export {
  type AlfworldOptions,
  type AlfworldTask,
  alfworld,
  type HouseholdSize,
  type TaskType,
} from "./environment/alfworld/alfworld.ts"
// Environments.
export { type BlackjackOptions, blackjack } from "./environment/cards/blackjack.ts"
export { type EzPointsOptions, ezPoints } from "./environment/cards/ez-points.ts"
export { type NumberLineOptions, numberLine } from "./environment/cards/number-line.ts"
export type { CardOptions, CardTask } from "./environment/cards/options.ts"
export { type Points24Options, points24 } from "./environment/cards/points24.ts"
export type {
  Environment,
  EnvironmentEpisode,
  EpisodeContext,
  Expert,
  Message,
  Observation,
  ParsedAction,
  StepResult,
  Turn,
} from "./environment/environment.ts"
export { openEnv } from "./environment/openenv/openenv.ts"
export type { ObservedText, OpenEnvMoment, OpenEnvOptions, OpenEnvTask } from "./environment/openenv/options.ts"
export {
  type EnvironmentName,
  type EnvironmentOptions,
  environmentNames,
  type NamedEnvironment,
  openEnvironment,
} from "./environment/registry.ts"
export { type Corpus, type OpenCorpusOptions, openCorpus } from "./environment/search/corpus.ts"
export type { Passage, Retriever } from "./environment/search/retriever.ts"
export { type SearchOptions, type SearchTask, search } from "./environment/search/search.ts"
export { type RetrieverServer, type ServeRetrieverOptions, serveRetriever } from "./environment/search/server.ts"
export { type SokobanOptions, type SokobanTask, sokoban } from "./environment/sokoban/sokoban.ts"
export { firstContained, readTagged, type TaggedReply } from "./environment/tags.ts"
export { type NounTagger, type WebShopOptions, type WebShopTask, webshop } from "./environment/webshop/webshop.ts"
export { GigpoError, type GigpoErrorCode } from "./errors.ts"
export {
  clippedSurrogate,
  type SurrogateInput,
  type SurrogateOptions,
  type SurrogateReport,
} from "./kernels/clipped-surrogate.ts"
export { type AnchorBytes, type GroupAnchorsOptions, groupAnchors } from "./kernels/group-anchors.ts"
export { tokenLogProbs } from "./kernels/token-log-probs.ts"
// Losses: what is minimised, in TypeScript; those that ship run in the engine's kernel.
export { clippedSurrogate as clippedSurrogateLoss } from "./loss/clipped-surrogate.ts"
export { composeLoss, type LossTerms } from "./loss/compose-loss.ts"
export { crossEntropy as crossEntropyLoss } from "./loss/cross-entropy.ts"
export type { LossInput, LossNeed, LossOutput, TokenLoss } from "./loss/token-loss.ts"
// The policy: a language model that samples and learns.
export type { ModelConfig } from "./model-files/model-config.ts"
// Options: tables of them, for modules of one's own, and numbers that change over a run.
export * as fields from "./options/field.ts"
export { readOptions } from "./options/read.ts"
export { at, atMoment, type Moment, type Ramp, type Schedule, type Scheduled } from "./options/schedule.ts"
export type { Field, Fields, OptionsOf, Resolved } from "./options/table.ts"
export { Random } from "./random.ts"
// Rollout: episodes on their own.
export { type CheckOptions, checkEnvironment } from "./rollout/check-environment.ts"
export {
  type Episode,
  type EpisodeSetup,
  type EpisodeStep,
  type Outcome,
  playEpisode,
  runEpisode,
} from "./rollout/episode.ts"
export { type ExpertSetup, type ExpertStep, playExpert } from "./rollout/expert.ts"
export type {
  EpisodeStart,
  Group,
  HookContext,
  RolloutHooks,
  SampledTurn,
  TaskSource,
  TurnDecision,
} from "./rollout/hooks.ts"
export type { EpisodeEnd, Play, PlayContext, PlaySample, PlaySampleOptions, RecordedStep } from "./rollout/play.ts"
export { type Rollout, type RolloutSetup, rollout, type StepPlace } from "./rollout/rollout.ts"
export { environmentTasks, takeTasks } from "./rollout/tasks.ts"
export type { Json, State, StateArray, Stateful } from "./state.ts"
// Text to tokens.
export type { ChatCodec, Prompt } from "./tokenizer/chat-codec.ts"
export { type RenderChatOptions, Tokenizer } from "./tokenizer/tokenizer.ts"
export { type ByteLevelBpe, type TrainTokenizerOptions, trainByteLevelTokenizer } from "./tokenizer/train.ts"
export { type WriteTokenizerOptions, writeTokenizer } from "./tokenizer/write.ts"
// Training: the loop, cloning, evaluation, small models from scratch, run folders.
export { type AccumulateOptions, accumulate } from "./training/accumulate.ts"
export { type CloneReport, type CloneSetup, clone } from "./training/clone.ts"
export { type EvaluateSetup, evaluate } from "./training/evaluate.ts"
export { type InitializeSetup, initialize } from "./training/initialize.ts"
export type { RunObserver, RunOutcome, RunStart } from "./training/observers.ts"
export type {
  CloneOptions,
  EstimatorOptions,
  EvaluationOptions,
  EvaluationReport,
  InitializeOptions,
  IterationReport,
  LossOptions,
  OptimizerOptions,
  RolloutOptions,
  TrainOptions,
} from "./training/options.ts"
export type { TrainSetup } from "./training/prepare.ts"
export type { Progress } from "./training/progress.ts"
export type { Reports } from "./training/reports.ts"
export { batches, byTask, type CollectedStep, collectSteps, giveCredit, layRows, toRows } from "./training/rows.ts"
export { Run, type RunMode, type RunOptions } from "./training/run.ts"
export { train } from "./training/train.ts"
