// The public names, one by one.

// Credit: pure functions on plain arrays; no engine needed.
export { groupByAnchor, groupBySimilarity } from "./credit/anchors.ts"
export { gigpoAdvantages } from "./credit/gigpo.ts"
export { grpoAdvantages } from "./credit/grpo.ts"
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
  Completion,
  CustomLoss,
  LossReport,
  LossSpec,
  Policy,
  PolicyLossOptions,
  Row,
  SampleRequest,
  StepReport,
} from "./engine/engine.ts"
export { NativePolicy } from "./engine/native/native-policy.ts"
export { type LoraOptions, type MemoryPlan, memoryPlan, type NativePolicyOptions } from "./engine/native/options.ts"
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
export { type CheckOptions, checkEnvironment } from "./environment/check.ts"
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
export { environmentNames, openEnvironment } from "./environment/registry.ts"
export { type Corpus, type OpenCorpusOptions, openCorpus } from "./environment/search/corpus.ts"
export type { Passage, Retriever } from "./environment/search/retriever.ts"
export { type SearchOptions, type SearchTask, search } from "./environment/search/search.ts"
export { type RetrieverServer, type ServeRetrieverOptions, serveRetriever } from "./environment/search/server.ts"
export { type SokobanOptions, type SokobanTask, sokoban } from "./environment/sokoban/sokoban.ts"
export { firstContained, readTagged, type TaggedReply } from "./environment/tags.ts"
export { type NounTagger, type WebShopOptions, type WebShopTask, webshop } from "./environment/webshop/webshop.ts"
export { GigpoError, type GigpoErrorCode } from "./errors.ts"
export {
  type AnchorBytes,
  clippedSurrogate,
  type GroupAnchorsOptions,
  groupAnchors,
  type SurrogateInput,
  type SurrogateOptions,
  type SurrogateReport,
  tokenLogProbs,
} from "./kernels.ts"
// The policy: a language model that samples and learns.
export type { ModelConfig } from "./model-files/model-config.ts"
export { Random } from "./random.ts"
// Rollout: episodes on their own.
export {
  type Episode,
  type EpisodeSetup,
  type EpisodeStep,
  type Outcome,
  playEpisode,
  runEpisode,
} from "./rollout/episode.ts"
export { type ExpertSetup, type ExpertStep, playExpert } from "./rollout/expert.ts"
export { type RolloutSetup, rollout } from "./rollout/rollout.ts"
// Text to tokens.
export { type RenderChatOptions, Tokenizer } from "./tokenizer/tokenizer.ts"
export { type ByteLevelBpe, type TrainTokenizerOptions, trainByteLevelTokenizer } from "./tokenizer/train.ts"
export { type WriteTokenizerOptions, writeTokenizer } from "./tokenizer/write.ts"
// Training: the loop, cloning, evaluation, small models from scratch, run folders.
export { type CloneReport, type CloneSetup, clone } from "./training/clone.ts"
export { type EvaluateSetup, evaluate } from "./training/evaluate.ts"
export { type InitializeOptions, type InitializeSetup, initialize } from "./training/initialize.ts"
export type {
  CloneOptions,
  EstimatorOptions,
  EvaluationOptions,
  EvaluationReport,
  IterationReport,
  OptimizerOptions,
  RolloutOptions,
  TrainOptions,
} from "./training/options.ts"
export type { Progress } from "./training/progress.ts"
export { Run } from "./training/run.ts"
export { type TrainSetup, train } from "./training/train.ts"
