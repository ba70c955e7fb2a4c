// The public names, one by one.

// What there is, as a table.
export type { Algorithm, Change, Origin, Standing } from "./algorithms/algorithm.ts"
export { algorithms } from "./algorithms/algorithms.ts"

// Credit: estimators, what they are made of, and their pure functions on plain arrays; no engine needed.
export { type A2tgpoOptions, a2tgpo } from "./credit/a2tgpo.ts"
export { type AepoOptions, aepo } from "./credit/aepo.ts"
export { groupByAnchor, groupBySimilarity } from "./credit/anchors.ts"
export { type Amendment, amendCredit } from "./credit/as-estimator.ts"
export { type BatchStep, batchOf } from "./credit/batch.ts"
export { beliefKey } from "./credit/belief-key.ts"
export { type CandidateScores, candidateRows, candidateScores } from "./credit/candidates.ts"
export { type DpepoOptions, dpepo } from "./credit/dpepo.ts"
export { drGrpo } from "./credit/dr-grpo.ts"
export { type DrMasOptions, drMas } from "./credit/dr-mas.ts"
export { type EmaGrpoOptions, emaGrpo } from "./credit/ema-grpo.ts"
export { type EmpgOptions, empg } from "./credit/empg.ts"
export type {
  Batch,
  CandidateRecord,
  Credit,
  Estimator,
  EstimatorContext,
  Need,
  StepCredit,
  StepRecord,
} from "./credit/estimator.ts"
export { farthestPoints } from "./credit/farthest-points.ts"
export { type GdpoOptions, gdpo } from "./credit/gdpo.ts"
export { gigpo, gigpoAdvantages } from "./credit/gigpo.ts"
export { gpg } from "./credit/gpg.ts"
export { grpo, grpoAdvantages, rloo } from "./credit/grpo.ts"
export { type HgpoOptions, hgpo } from "./credit/hgpo.ts"
export { historyLevels } from "./credit/history-levels.ts"
export { type IgpoOptions, igpo } from "./credit/igpo.ts"
export { answerProbabilities, informationGains } from "./credit/information-gain.ts"
export { klRewards } from "./credit/kl-reward.ts"
export { type MemAgentOptions, memAgent } from "./credit/mem-agent.ts"
export { type MicaOptions, mica } from "./credit/mica.ts"
export { type Normalizer, type NormalizerOptions, normalizer } from "./credit/normalizer.ts"
export type { StepKey, StepNumbers } from "./credit/of-steps.ts"
export { type OpoOptions, opo } from "./credit/opo.ts"
export { overlongPenalty } from "./credit/overlong.ts"
export { parallelVariety, type VarietyOptions } from "./credit/parallel-variety.ts"
export {
  acrossTasks,
  anchorLevels,
  discountedReturn,
  type GigpoParts,
  keyLevels,
  type StepLevel,
  similarityLevels,
} from "./credit/parts.ts"
export { type PassAtKOptions, passAtK } from "./credit/pass-at-k.ts"
export { type PpoOptions, ppo } from "./credit/ppo.ts"
export { presets } from "./credit/presets.ts"
export { type RebelOptions, rebel } from "./credit/rebel.ts"
export { type ReinforcePlusPlusOptions, reinforcePlusPlus } from "./credit/reinforce-plus-plus.ts"
export { reinforcePlusPlusBaseline } from "./credit/reinforce-plus-plus-baseline.ts"
export { type RemaxOptions, remax } from "./credit/remax.ts"
export { type ReplySpan, replySpans, type SpanKind, type SpanTags, tokenKinds } from "./credit/reply-spans.ts"
export { discountedReturns } from "./credit/returns.ts"
export { type RewardFlowOptions, rewardFlow } from "./credit/reward-flow.ts"
export { similarityRatio } from "./credit/similarity.ts"
export { type SpearOptions, spear } from "./credit/spear.ts"
export { plannedStrategies, type StrataOptions, strata } from "./credit/strata.ts"
export { type Hindsight, hindsightWeight, type TeacherWeightOptions, teacherWeights } from "./credit/teacher-weights.ts"
export { type TokenWeightOptions, tokenWeights } from "./credit/token-weights.ts"
export { generalizedAdvantages } from "./credit/traces.ts"
export { type GigpoTreeOptions, gigpoTree, treeLevels } from "./credit/tree.ts"
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
export { type VinePpoOptions, vinePpo } from "./credit/vine-ppo.ts"
export { type VprOptions, vpr } from "./credit/vpr.ts"
export { type WhitenOptions, whiten } from "./credit/whiten.ts"
// What is cloned in place of an expert.
export type { DataContext, Example, TrainingData } from "./data/data.ts"
export { transcripts } from "./data/transcripts.ts"
// The kernels on their own, and the machine.
export { type DeviceReport, deviceReport } from "./device.ts"
export type {
  AdamWStep,
  Aggregation,
  ClippedSurrogate,
  Completion,
  Critic,
  CrossEntropy,
  FrozenWeights,
  KlEstimator,
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
  Teacher,
  TopTokens,
  Trainable,
  Unit,
  ValueLoss,
} from "./engine/engine.ts"
export { Constraint, type Vocabulary } from "./engine/native/constraint.ts"
export { NativePolicy } from "./engine/native/native-policy.ts"
export { type LoraOptions, type MemoryPlan, memoryPlan, type NativePolicyOptions } from "./engine/native/options.ts"
export type { Capabilities, ProbeReport } from "./engine/remote/capabilities.ts"
export type { Pending } from "./engine/remote/futures.ts"
export { RemoteEngine, type RemoteEngineOptions, type RemoteShape } from "./engine/remote/remote-engine.ts"
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
  OffersTasks,
  ParsedAction,
  StepResult,
  Turn,
} from "./environment/environment.ts"
export { type LookFirstOptions, lookFirst } from "./environment/look-first.ts"
// Memories: what prompts tell of the past.
export { type BeliefOptions, beliefs } from "./environment/memory/beliefs.ts"
export { type ChunkOptions, chunks } from "./environment/memory/chunks.ts"
export type {
  AskOptions,
  EpisodeMemory,
  Memory,
  MemoryContext,
  RememberedEpisode,
  TellPast,
  Told,
} from "./environment/memory/memory.ts"
export { type PlanOptions, plan } from "./environment/memory/plan.ts"
export { type RecentOptions, recent } from "./environment/memory/recent.ts"
export { type SkillOptions, skills } from "./environment/memory/skills.ts"
export { type StateBlockOptions, stateBlock } from "./environment/memory/state.ts"
export { type SummaryOptions, summary } from "./environment/memory/summary.ts"
export { openEnv } from "./environment/openenv/openenv.ts"
export type { ObservedText, OpenEnvMoment, OpenEnvOptions, OpenEnvTask } from "./environment/openenv/options.ts"
export { type ParallelOptions, parallel } from "./environment/parallel.ts"
export { type PlanFirstOptions, planFirst } from "./environment/plan-first.ts"
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
export { type SqlDatabase, SqlDatabases, type SqlLimits } from "./environment/sql/databases.ts"
export { type SqlEnvironment, type SqlOptions, type SqlTask, sql } from "./environment/sql/sql.ts"
export { firstContained, readTagged, type TaggedReply } from "./environment/tags.ts"
export { type TaskFileOptions, taskFile } from "./environment/tasks/tasks.ts"
export { type NounTagger, type WebShopOptions, type WebShopTask, webshop } from "./environment/webshop/webshop.ts"
export { GigpoError, type GigpoErrorCode } from "./errors.ts"
// What sampled text must be.
export { jsonSchema } from "./grammar/json-schema.ts"
export type { Node as Grammar } from "./grammar/node.ts"
export {
  clippedSurrogate,
  type SurrogateInput,
  type SurrogateOptions,
  type SurrogateReport,
} from "./kernels/clipped-surrogate.ts"
export { type AnchorBytes, type AnchorGroups, type GroupAnchorsOptions, groupAnchors } from "./kernels/group-anchors.ts"
export { tokenLogProbs } from "./kernels/token-log-probs.ts"
export { type ValueLossInput, type ValueLossOptions, type ValueLossReport, valueLoss } from "./kernels/value-loss.ts"
// Losses: what is minimised, in TypeScript; the clipped surrogate, GSPO and cloning run in the engine's kernel as well.
export { type ActGuideOptions, actGuide as actGuideLoss } from "./loss/act-guide.ts"
export { type AdaptiveKl, type AdaptiveKlOptions, adaptiveKl } from "./loss/adaptive-kl.ts"
export { type CispoOptions, cispo as cispoLoss } from "./loss/cispo.ts"
export { type ClipCovOptions, clipCov as clipCovLoss } from "./loss/clip-cov.ts"
export { clippedSurrogate as clippedSurrogateLoss } from "./loss/clipped-surrogate.ts"
export { composeLoss, type LossTerms } from "./loss/compose-loss.ts"
export { crossEntropy as crossEntropyLoss } from "./loss/cross-entropy.ts"
export { type DgpoOptions, dgpo as dgpoLoss } from "./loss/dgpo.ts"
export { type DgpoWeightOptions, dgpoWeights } from "./loss/dgpo-weights.ts"
export { type DistillationOptions, distillation as distillationLoss } from "./loss/distillation.ts"
export { type DpoOptions, dpo as dpoLoss } from "./loss/dpo.ts"
export { type DppoOptions, dppoKl as dppoKlLoss, dppoTv as dppoTvLoss } from "./loss/dppo.ts"
export { type DroOptions, dro as droLoss } from "./loss/dro.ts"
export { type GmpoOptions, gmpo as gmpoLoss } from "./loss/gmpo.ts"
export { type GspoOptions, gspo as gspoLoss } from "./loss/gspo.ts"
export { type HolderOptions, holder as holderLoss } from "./loss/holder.ts"
export { type HolderScheduleName, type HolderScheduleOptions, holderSchedule } from "./loss/holder-schedule.ts"
export { type ImportanceOptions, importanceWeights } from "./loss/importance-weights.ts"
export { type KlCovOptions, klCov as klCovLoss } from "./loss/kl-cov.ts"
export { mismatch } from "./loss/mismatch.ts"
export { reinforce as reinforceLoss } from "./loss/reinforce.ts"
export { type SapoOptions, sapo as sapoLoss } from "./loss/sapo.ts"
export type { LossInput, LossNeed, LossOutput, TeacherTop, TokenLoss } from "./loss/token-loss.ts"
// The policy: a language model that samples and learns.
export type { ModelConfig } from "./model-files/model-config.ts"
// Options: tables of them, for modules of one's own, and numbers that change over a run.
export * as fields from "./options/field.ts"
export { readOptions } from "./options/read.ts"
export {
  at,
  atMoment,
  type Moment,
  type Ramp,
  type RampShape,
  type Schedule,
  type Scheduled,
} from "./options/schedule.ts"
export type { Field, Fields, OptionsOf, Resolved } from "./options/table.ts"
// Panels: fixed lists of tasks, and what models made of them.
export { type Compared, type Comparison, compareEvaluations } from "./panel/compare.ts"
export type { ComparedSuccess } from "./panel/compare-success.ts"
export type { PanelDefinition } from "./panel/definition.ts"
export type { Difference } from "./panel/differences.ts"
export { type EvaluatePanelSetup, evaluatePanel } from "./panel/evaluate.ts"
export {
  type EvaluatedEpisode,
  type EvaluationHeader,
  type PanelDigests,
  type PanelEvaluation,
  readEvaluation,
  writeEvaluation,
} from "./panel/evaluation-file.ts"
export { type ExportGamesOptions, exportGames } from "./panel/export-games.ts"
export { describePanel, panelNames } from "./panel/find.ts"
export { type MeanInterval, pairedInterval, tInterval } from "./panel/paired.ts"
export { type OpenPanelOptions, openPanel, type Panel } from "./panel/panel.ts"
export { type PinPanelOptions, pinPanel } from "./panel/pin.ts"
export { type KindReport, type PanelReport, reportPanel } from "./panel/report.ts"
export type { PanelTask } from "./panel/tasks.ts"
export { Random } from "./random.ts"
// Rollout: episodes on their own.
export { type CheckOptions, checkEnvironment } from "./rollout/check-environment.ts"
export {
  type Candidate,
  type Episode,
  type EpisodeSetup,
  type EpisodeStep,
  type Outcome,
  playEpisode,
  runEpisode,
  type ScoredCandidate,
} from "./rollout/episode.ts"
export { type ExpertSetup, type ExpertStep, playExpert } from "./rollout/expert.ts"
export {
  arpoBranches,
  type EntropyBranchingOptions,
  entropyBranching,
} from "./rollout/hooks/entropy-branching.ts"
export { type ForkAtOptions, forkAt } from "./rollout/hooks/fork-at.ts"
export { type T2poOptions, t2po } from "./rollout/hooks/t2po.ts"
export {
  type T2poCutOptions,
  type T2poResampleOptions,
  type T2poScoreOptions,
  t2poCut,
  t2poResamples,
  t2poScore,
} from "./rollout/hooks/t2po-score.ts"
export { type ThinkWhenUnsureOptions, thinkWhenUnsure } from "./rollout/hooks/think-when-unsure.ts"
export type {
  Candidates,
  EpisodeStart,
  Group,
  GuideContext,
  HookContext,
  RolloutHooks,
  SampledReply,
  SampledTurn,
  SamplingTurn,
  TaskSource,
  TurnDecision,
  TurnSituation,
} from "./rollout/hooks.ts"
export type { EpisodeEnd, Play, PlayContext, PlaySample, PlaySampleOptions, RecordedStep } from "./rollout/play.ts"
export { type Rollout, type RolloutSetup, rollout, type StepPlace } from "./rollout/rollout.ts"
export { environmentTasks, takeTasks } from "./rollout/tasks.ts"
// Agents of one's own: `train({ agent })`, programs as agents, what lets them play in a loop of one's own, and what is compared of
// what they see.
export { type Agent, type AgentContext, type AgentEnd, type AgentExpert, agentPlay } from "./server/agent.ts"
export { type Gateway, type GatewayOptions, openGateway } from "./server/gateway.ts"
export { withoutNoise } from "./server/normalize.ts"
export { type ProcessAgentOptions, processAgent } from "./server/process-agent.ts"
export type { Json, State, StateArray, Stateful } from "./state.ts"
// Text to tokens.
export type { ChatCodec, Prompt } from "./tokenizer/chat-codec.ts"
export { tokenTexts } from "./tokenizer/token-texts.ts"
export { type RenderChatOptions, Tokenizer } from "./tokenizer/tokenizer.ts"
export { type ByteLevelBpe, type TrainTokenizerOptions, trainByteLevelTokenizer } from "./tokenizer/train.ts"
export { type WriteTokenizerOptions, writeTokenizer } from "./tokenizer/write.ts"
// Training: the loop, cloning, evaluation, small models from scratch, run folders.
export { type AccumulateOptions, accumulate } from "./training/accumulate.ts"
export {
  type AnchorCount,
  type AnchorFinding,
  type AnchorReport,
  type AnchorReportOptions,
  anchorReport,
} from "./training/anchor-report.ts"
export type { BestEvaluation } from "./training/best.ts"
export { type CloneReport, type CloneSetup, clone } from "./training/clone.ts"
// Curricula: what is played, from where and for how long.
export { type ActGuideCurriculumOptions, actGuideCurriculum } from "./training/curriculum/act-guide.ts"
export { type BySuccessOptions, bySuccess } from "./training/curriculum/by-success.ts"
export type { Curriculum, CurriculumHooks, CurriculumSetup } from "./training/curriculum/curriculum.ts"
export { type HorizonOptions, horizon } from "./training/curriculum/horizon.ts"
export { joinHooks } from "./training/curriculum/join-hooks.ts"
export { type TcodOptions, tcod, tcodSchedule } from "./training/curriculum/tcod.ts"
export { type EvaluateSetup, evaluate } from "./training/evaluate.ts"
export type { FailureReason } from "./training/failure-reasons.ts"
export { replayFailure } from "./training/guards/failure.ts"
export type { StepOutcome } from "./training/guards/step.ts"
export { type Initialized, type InitializeSetup, initialize } from "./training/initialize.ts"
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
export type { RecordedEpisode, RecordedGroup } from "./view/data/recorded.ts"
export type { RunInfo } from "./view/data/source.ts"
export { recordedEpisodes } from "./view/record/as-data.ts"
export type { IterationSummary } from "./view/record/file.ts"
export type { RecordingOptions } from "./view/record/options.ts"
export { type EpisodesRange, readEpisodes, readGroup, readSummaries } from "./view/record/read.ts"
export { type RecordEpisodesOptions, recordEpisodes } from "./view/record/recorder.ts"
export { episodesToJsonl } from "./view/record/to-jsonl.ts"
export { episodesToParquet } from "./view/record/to-parquet.ts"
export { describeRun, findRuns } from "./view/runs.ts"
export { type WriteReportOptions, type WrittenReport, writeReport } from "./view/serve/report.ts"
export { type OpenedView, openView, type ViewOptions } from "./view/serve/view.ts"
export { type MlflowOptions, mlflow } from "./view/sinks/mlflow.ts"
export { type TensorBoardOptions, tensorBoard } from "./view/sinks/tensorboard.ts"
