// `gigpo/engine`: interface between `train` and an engine, and types for its implementation.

import "../check-node.mts"

export type { EngineSetup, OpenEngine, OpenedEngine } from "../engine/custom-engine.ts"
export type {
  AdamWParameters,
  Aggregation,
  ClippedSurrogate,
  Completion,
  Critic,
  CrossEntropy,
  EngineRequirements,
  FrozenWeights,
  KlEstimator,
  LinearLoss,
  LogProbsOptions,
  LossReport,
  ModelStore,
  NativeLoss,
  OptimizerStepStatistics,
  SampleRequest,
  Sampler,
  SamplerSnapshot,
  SequenceUnit,
  Snapshots,
  Teacher,
  TokenStatisticName,
  TokenStatistics,
  TopTokens,
  Trainable,
  ValueLoss,
} from "../engine/engine.ts"
export { Constraint, type Vocabulary } from "../engine/native/constraint.ts"
export type { Capabilities, ProbeReport } from "../engine/remote/capabilities.ts"
export type { PendingRequest } from "../engine/remote/futures.ts"
export type { RemoteShape } from "../engine/remote/remote-engine.ts"
export {
  type Segment,
  type SegmentAdvantages,
  type Sequence,
  sampledPositions,
  sampledTokens,
  stepSequence,
  type TokenColumn,
} from "../engine/sequence.ts"
export { jsonSchema } from "../grammar/json-schema.ts"
export type { Node as Grammar } from "../grammar/node.ts"
export type { ChatCodec, Prompt } from "../tokenizer/chat-codec.ts"
export { tokenTexts } from "../tokenizer/token-texts.ts"
