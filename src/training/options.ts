import { estimators } from "../credit/estimators.ts"
import { ownEstimator } from "../credit/options.ts"
import { overlongFields } from "../credit/overlong.ts"
import { teacherWeightFields } from "../credit/teacher-weights.ts"
import { tokenWeightFields } from "../credit/token-weights.ts"
import { dataProblem, type TrainingData } from "../data/data.ts"
import { lowestTemperature } from "../engine/check-arguments.ts"
import { cloningLosses } from "../loss/cloning-losses.ts"
import { importanceFields } from "../loss/importance-weights.ts"
import { losses } from "../loss/losses.ts"
import { ownLoss } from "../loss/options.ts"
import { choice, field, flag, group, number, oneOf, optionalChoice, optionalGroup, whole } from "../options/field.ts"
import { fieldsOf } from "../options/named.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { ownTurnHooks, turnHooks } from "../rollout/hooks/turn-hooks.ts"
import { rolloutFields } from "../rollout/options.ts"
import { batchFields } from "./batching.ts"
import { criticFields } from "./critic.ts"
import { curricula } from "./curriculum/curricula.ts"
import { ownCurriculum } from "./curriculum/curriculum.ts"
import type { FailureReason } from "./failure-reasons.ts"
import { guardFields } from "./guards/options.ts"
import { implicitQFields } from "./implicit-q.ts"
import { aroundLoss } from "./kl.ts"
import { cloningOptimizerFields, optimizerFields } from "./optimizer.ts"
import { stopFields } from "./stop.ts"

const seed = whole(0, "The root of every random number.", { least: 0 })

export const evaluationFields = {
  tasks: whole(256, "Held-out tasks, one episode each.", { least: 1 }),
  temperature: field<number, "The default is the paper's; 0 takes the most likely token.">(
    0.4,
    "The default is the paper's; 0 takes the most likely token.",
    (value) =>
      value === 0 || (Number.isFinite(value) && (value as number) >= lowestTemperature)
        ? undefined
        : `must be 0, for the most likely token, or at least ${lowestTemperature}`,
  ),
}

const estimator = choice("gigpo", fieldsOf(estimators), "How episodes become advantages.", { own: ownEstimator })

const loss = choice(
  "clipped-surrogate",
  fieldsOf(losses),
  "The policy's loss. A KL to the reference policy and an entropy bonus stand around any of them.",
  { own: ownLoss, common: aroundLoss },
)

export const trainFields = {
  seed,
  iterations: whole(150, "Rounds of playing, credit and updates.", { least: 1 }),
  groups: whole(16, "Tasks of one iteration.", { least: 1 }),
  groupSize: whole(8, "Episodes of each task.", { least: 1 }),
  dynamicSampling: flag(
    false,
    "Replace groups whose episodes all have the same return by the next tasks, in at most `rollout.refills` rounds (DAPO).",
  ),
  ...batchFields,
  rollout: group(rolloutFields, "How episodes are sampled."),
  curriculum: optionalChoice(
    choice(undefined, fieldsOf(curricula), "What is played, from where and for how long, as training goes on.", {
      own: ownCurriculum,
    }),
    "the environment's tasks in their order, from their start",
  ),
  turns: optionalChoice(
    choice(
      undefined,
      fieldsOf(turnHooks),
      "What decides on turns while they are played: sampled again, cut, branched.",
      {
        own: ownTurnHooks,
      },
    ),
    "every reply is taken as it comes",
  ),
  estimator,
  loss,
  oldLogProbs: oneOf(
    "sampled",
    ["sampled", "recomputed"],
    "Log-probabilities that ratios start from: the sampler's, or the trainer's own before its first update, for one more pass.",
  ),
  importance: optionalGroup(
    importanceFields,
    "Weights against the mismatch of sampler and trainer; with recomputed log-probabilities.",
    "no weights",
  ),
  tokenWeights: optionalGroup(
    tokenWeightFields,
    "What tokens weigh in the policy's loss by what they are for: thoughts, actions, calls of tools.",
    "all weigh the same",
  ),
  teacherWeights: optionalGroup(
    teacherWeightFields,
    "What tokens of actions weigh by whether a teacher finds of them what their advantage says (SERL).",
    "all weigh the same",
  ),
  overlong: optionalGroup(
    overlongFields,
    "Taken off the reward of replies that come near to `rollout.maxReplyTokens` (DAPO).",
    "replies of any length count the same",
  ),
  optimizer: group(optimizerFields, "How AdamW takes its steps."),
  critic: group(criticFields, "What foretells returns, for estimators that need it (ppo)."),
  evaluation: group(
    {
      every: whole(
        0,
        "Evaluate before the first and after every so many iterations; the last is always evaluated. 0: never.",
        { least: 0 },
      ),
      ...evaluationFields,
    },
    "How held-out tasks are played.",
  ),
  checkpointEvery: whole(
    25,
    "Write a checkpoint after every so many iterations, and after the last and an evaluation that is the best so far.",
    { least: 1 },
  ),
  keepCheckpoints: whole(2, "Newest checkpoints to keep; that of the best evaluation is kept besides.", { least: 1 }),
  stop: optionalGroup(
    stopFields,
    "What ends a run before its last iteration: it is evaluated and saved as at its end, and can be resumed with more.",
    "it ends with the last",
  ),
  guards: group(guardFields, "How a run is kept from harm."),
}

/** Of `evaluate`, where the temperature beside the tasks counts, not the rollout's. */
export const evaluateFields = {
  seed,
  ...evaluationFields,
  rollout: group(rolloutFields, "How episodes are sampled."),
}

export const cloneFields = {
  seed,
  data: field<
    TrainingData | string | undefined,
    "Chat transcripts, or preference pairs, to learn from: a JSON Lines file."
  >(undefined, "Chat transcripts, or preference pairs, to learn from: a JSON Lines file.", dataProblem, {
    otherwise: "the expert is learned from",
  }),
  loss: choice("cross-entropy", fieldsOf(cloningLosses), "What is minimised; dpo learns from preference pairs.", {
    own: ownLoss,
  }),
  implicitQ: optionalGroup(
    implicitQFields,
    "Offline reinforcement: what replies of recorded episodes weigh by how well they did (IQL); needs successes: false to know of others.",
    "all weigh the same",
  ),
  replies: oneOf(
    "all",
    ["all", "last"],
    "Which replies of a transcript are learned, where its messages have no weight.",
  ),
  successes: flag(true, "Of recorded episodes learn from those alone that succeeded."),
  tooLong: oneOf(
    "leave-out",
    ["leave-out", "cut"],
    "What becomes of conversations of the data that are longer than the model learns from.",
  ),
  tasks: whole(1000, "Tasks that the expert solves to learn from.", { least: 1 }),
  epochs: whole(10, "Passes over what is learned from.", { least: 1 }),
  batchRows: whole(64, "Steps of one optimizer step; both replies of a pair count.", { least: 1 }),
  optimizer: group(cloningOptimizerFields, "How AdamW takes its steps."),
  checkpointEvery: whole(1, "Write a checkpoint after every so many epochs; the last always is.", { least: 1 }),
}

/** The shape of a small Qwen3-like model (no biases, norms on queries and keys, tied embeddings). */
export const initializeFields = {
  seed,
  hiddenSize: whole(128, "Numbers that a token is to the model; a multiple of 2 × heads.", { least: 1 }),
  layers: whole(4, "Layers of attention and feed-forward network.", { least: 1 }),
  heads: whole(4, "Attention heads of each layer.", { least: 1 }),
  keyValueHeads: whole(undefined, "Heads of keys and values, which heads share.", {
    least: 1,
    otherwise: "as many as heads",
  }),
  intermediateSize: whole(undefined, "Width of the feed-forward network.", { least: 1, otherwise: "3 × hiddenSize" }),
  deviation: number(undefined, "Standard deviation of the initial weights.", {
    above: 0,
    otherwise: "1 / √hiddenSize",
  }),
  vocabularySize: whole(512, "Most tokens of the tokenizer that is learned from the environment's texts.", {
    least: 1,
  }),
  maxPositions: whole(undefined, "Longest prompt and reply together.", {
    least: 2,
    otherwise: "four times the longest prompt that was seen, at least 256",
  }),
}

export type TrainOptions = OptionsOf<typeof trainFields>
export type EstimatorOptions = NonNullable<TrainOptions["estimator"]>
export type LossOptions = NonNullable<TrainOptions["loss"]>
export type EvaluationOptions = OptionsOf<typeof evaluationFields>
export type EvaluateOptions = OptionsOf<typeof evaluateFields>
export type CloneOptions = OptionsOf<typeof cloneFields>
export type InitializeOptions = OptionsOf<typeof initializeFields>
export type ResolvedCloneOptions = Resolved<typeof cloneFields>
export type ResolvedTrainOptions = Resolved<typeof trainFields>
export type { RolloutOptions } from "../rollout/options.ts"
export type { OptimizerOptions } from "./optimizer.ts"

/** What is known of one iteration; one line of metrics.jsonl. Numbers that do not apply are absent. */
export interface IterationReport {
  readonly iteration: number
  /** When it was reported: ISO 8601, in UTC. */
  readonly time?: string
  /**
   * Names with a slash, e.g. "episode/success", "loss/policy", "time/rollout"; units are seconds, tokens, shares. "episode/success"
   * is the share of all episodes, as in an evaluation: failed and dropped ones count as lost. "time/run" is how long the run has
   * taken, with what it took before it was resumed.
   */
  readonly metrics: Readonly<Record<string, number>>
  /** Why episodes failed; absent where none did. */
  readonly failures?: readonly FailureReason[]
  readonly evaluation?: EvaluationReport
  /** Why the run ended with this iteration, before its last one (`stop`). */
  readonly stopped?: string
}

export interface EvaluationReport {
  readonly episodes: number
  readonly failed: number
  /**
   * Share of all episodes with metric `success` = 1, where failed and dropped ones are lost, and its 95 % interval (Wilson). Where no
   * episode tells of success it is 0, and `metrics` has none.
   */
  readonly success: number
  readonly successInterval: readonly [number, number]
  readonly meanReturn: number
  readonly meanSteps: number
  readonly metrics: Readonly<Record<string, number>>
  /** Why episodes failed; absent where none did. */
  readonly failures?: readonly FailureReason[]
}
