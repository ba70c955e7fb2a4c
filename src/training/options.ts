import { type AnyEstimatorChoice, estimators } from "../credit/estimators.ts"
import { customEstimator } from "../credit/options.ts"
import { overlongFields } from "../credit/overlong.ts"
import { teacherTokenWeightFields } from "../credit/teacher-token-weights.ts"
import { tokenWeightFields } from "../credit/token-weights.ts"
import { rolloutCorrectionFields } from "../loss/importance-weights.ts"
import { losses } from "../loss/losses.ts"
import { customLoss } from "../loss/options.ts"
import { boolean, choice, group, integer, oneOf, optionalChoice, optionalGroup } from "../options/field.ts"
import { fieldsOf } from "../options/named.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { customRolloutHooks, rolloutHooks } from "../rollout/hooks/built-in.ts"
import { rolloutFields } from "../rollout/options.ts"
import { batchFields } from "./batching.ts"
import { criticFields } from "./critic.ts"
import { curricula } from "./curriculum/curricula.ts"
import { customCurriculum } from "./curriculum/curriculum.ts"
import { evaluationFields, seedField } from "./evaluation-options.ts"
import { expertDataFields } from "./expert-data.ts"
import { guardFields } from "./guards/options.ts"
import { aroundLoss } from "./kl.ts"
import { optimizerFields } from "./optimizer.ts"
import { privilegedFields } from "./privileged.ts"
import { stopFields } from "./stop.ts"

const estimator: AnyEstimatorChoice = choice("gigpo", fieldsOf(estimators), "Advantage estimator.", {
  own: customEstimator,
})

const loss = choice(
  "clipped-surrogate",
  fieldsOf(losses),
  "Policy loss. A KL penalty and an entropy bonus can be added to each.",
  { own: customLoss, common: aroundLoss },
)

export const trainFields = {
  seed: seedField,
  iterations: integer(150, "Number of iterations: rollout, advantages and updates.", { min: 1 }),
  groups: integer(16, "Tasks (groups) per iteration.", { min: 1 }),
  groupSize: integer(8, "Episodes per task.", { min: 1 }),
  dynamicSampling: boolean(
    false,
    "Replace groups whose returns are all equal by groups of further tasks (dynamic sampling, DAPO), in at most `rollout.maxRefillRounds` rounds.",
  ),
  ...batchFields,
  maxStaleness: integer(
    0,
    "Maximum number of iterations that a rollout may be ahead of the updates. 0: synchronous. 1 (one-step-off policy): each rollout runs during the updates " +
      "before it, with the weights before them. Needs an engine with snapshots, such as a remote one.",
    { min: 0, max: 1 },
  ),
  rollout: group(rolloutFields, "Sampling of episodes."),
  curriculum: optionalChoice(
    choice(undefined, fieldsOf(curricula), "Choice of tasks, start states and step limits as training progresses.", {
      own: customCurriculum,
    }),
    "tasks in the order of the environment, from their start",
  ),
  rolloutHooks: optionalChoice(
    choice(
      undefined,
      fieldsOf(rolloutHooks),
      "Built-in hooks of the rollout, which resample, truncate or branch turns, or change the rewards of episodes.",
      {
        own: customRolloutHooks,
      },
    ),
    "no hooks",
  ),
  estimator,
  loss,
  oldLogProbs: oneOf(
    "sampled",
    ["sampled", "recomputed"],
    "Log-probabilities of the old policy: those of the sampler, or recomputed by the trainer before the first update in an additional " +
      "forward pass.",
  ),
  rolloutCorrection: optionalGroup(
    rolloutCorrectionFields,
    "Rollout correction (truncated importance sampling), which corrects the mismatch of sampler and trainer; needs oldLogProbs recomputed.",
    "no weights",
  ),
  tokenWeights: optionalGroup(
    tokenWeightFields,
    "Weights of tokens in the policy loss by kind: thinking, actions, tool calls.",
    "all tokens have the same weight",
  ),
  teacherTokenWeights: optionalGroup(
    teacherTokenWeightFields,
    "Weights of action tokens by the agreement of a teacher with the sign of the advantage (SERL).",
    "all tokens have the same weight",
  ),
  privileged: optionalGroup(
    privilegedFields,
    "Privileged teacher: a model that scores the completions with an additional text in front, for a loss or an estimator with a teacher " +
      "(distillation, loss.teacherWeight, teacherTokenWeights).",
    "the teacher has the input of the policy",
  ),
  expertData: optionalGroup(
    expertDataFields,
    "Steps of the environment's expert next to those of the policy, for the loss `chord`.",
    "no steps of an expert",
  ),
  overlong: optionalGroup(
    overlongFields,
    "Soft overlong punishment (DAPO): penalty on the reward of completions that approach `rollout.maxCompletionTokens`.",
    "no penalty",
  ),
  optimizer: group(optimizerFields, "Optimizer of the policy (AdamW)."),
  critic: group(criticFields, "Critic (value model), for estimators that need one (ppo)."),
  evaluation: group(
    {
      every: integer(
        0,
        "Iterations between evaluations; 0: off. There is also an evaluation before the first and after the last iteration.",
        { min: 0 },
      ),
      ...evaluationFields,
    },
    "Evaluations on held-out tasks.",
  ),
  checkpointEvery: integer(
    25,
    "Iterations between checkpoints. There is also a checkpoint after the last iteration and after each best evaluation so far.",
    { min: 1 },
  ),
  keepCheckpoints: integer(2, "Number of newest checkpoints to keep, in addition to that of the best evaluation.", {
    min: 1,
  }),
  stop: optionalGroup(
    stopFields,
    "Early stopping: criteria that end a run before its last iteration. The run is evaluated and saved, and can be resumed.",
    "no early stopping",
  ),
  guards: group(guardFields, "Checks for collapse, failures and non-finite numbers."),
}

/** Options of `train`. */
export type TrainOptions = OptionsOf<typeof trainFields>
/** Estimator by name with its options, or a custom one. */
export type EstimatorOptions = NonNullable<TrainOptions["estimator"]>
/** Loss by name with its options, or a custom one. */
export type LossOptions = NonNullable<TrainOptions["loss"]>
export type ResolvedTrainOptions = ResolvedOf<typeof trainFields>
export type { RolloutOptions } from "../rollout/options.ts"
export type { OptimizerOptions } from "./optimizer.ts"
