import { estimators } from "../credit/estimators.ts"
import { customEstimator } from "../credit/options.ts"
import { overlongFields } from "../credit/overlong.ts"
import { teacherWeightFields } from "../credit/teacher-weights.ts"
import { tokenWeightFields } from "../credit/token-weights.ts"
import { importanceFields } from "../loss/importance-weights.ts"
import { losses } from "../loss/losses.ts"
import { customLoss } from "../loss/options.ts"
import { boolean, choice, group, integer, oneOf, optionalChoice, optionalGroup } from "../options/field.ts"
import { fieldsOf } from "../options/named.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { customTurnHooks, turnHooks } from "../rollout/hooks/turn-hooks.ts"
import { rolloutFields } from "../rollout/options.ts"
import { batchFields } from "./batching.ts"
import { criticFields } from "./critic.ts"
import { curricula } from "./curriculum/curricula.ts"
import { customCurriculum } from "./curriculum/curriculum.ts"
import { evaluationFields, seedField } from "./evaluation-options.ts"
import { guardFields } from "./guards/options.ts"
import { aroundLoss } from "./kl.ts"
import { optimizerFields } from "./optimizer.ts"
import { stopFields } from "./stop.ts"

const estimator = choice("gigpo", fieldsOf(estimators), "How episodes become advantages.", { own: customEstimator })

const loss = choice(
  "clipped-surrogate",
  fieldsOf(losses),
  "The policy's loss. A KL to the reference policy and an entropy bonus stand around any of them.",
  { own: customLoss, common: aroundLoss },
)

export const trainFields = {
  seed: seedField,
  iterations: integer(150, "Rounds of playing, credit and updates.", { min: 1 }),
  groups: integer(16, "Tasks of one iteration.", { min: 1 }),
  groupSize: integer(8, "Episodes of each task.", { min: 1 }),
  dynamicSampling: boolean(
    false,
    "Replace groups whose episodes all have the same return by the next tasks, in at most `rollout.maxRefillRounds` rounds (DAPO).",
  ),
  ...batchFields,
  rollout: group(rolloutFields, "How episodes are sampled."),
  curriculum: optionalChoice(
    choice(undefined, fieldsOf(curricula), "What is played, from where and for how long, as training goes on.", {
      own: customCurriculum,
    }),
    "the environment's tasks in their order, from their start",
  ),
  turnHooks: optionalChoice(
    choice(
      undefined,
      fieldsOf(turnHooks),
      "What decides on turns while they are played: sampled again, cut, branched.",
      {
        own: customTurnHooks,
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
    "Taken off the reward of replies that come near to `rollout.maxCompletionTokens` (DAPO).",
    "replies of any length count the same",
  ),
  optimizer: group(optimizerFields, "How AdamW takes its steps."),
  critic: group(criticFields, "What predicts returns, for estimators that need it (ppo)."),
  evaluation: group(
    {
      every: integer(
        0,
        "Evaluate before the first and after every so many iterations; the last is always evaluated. 0: never.",
        { min: 0 },
      ),
      ...evaluationFields,
    },
    "How held-out tasks are played.",
  ),
  checkpointEvery: integer(
    25,
    "Write a checkpoint after every so many iterations, and after the last and an evaluation that is the best so far.",
    { min: 1 },
  ),
  keepCheckpoints: integer(2, "Newest checkpoints to keep; that of the best evaluation is kept besides.", { min: 1 }),
  stop: optionalGroup(
    stopFields,
    "What ends a run before its last iteration: it is evaluated and saved as at its end, and can be resumed with more.",
    "it ends with the last",
  ),
  guards: group(guardFields, "How a run is kept from harm."),
}

/** Options of `train`. */
export type TrainOptions = OptionsOf<typeof trainFields>
/** Estimator by name with its options, or a custom one. */
export type EstimatorOptions = NonNullable<TrainOptions["estimator"]>
/** Loss by name with its options, or a custom one. */
export type LossOptions = NonNullable<TrainOptions["loss"]>
export type ResolvedTrainOptions = Resolved<typeof trainFields>
export type { RolloutOptions } from "../rollout/options.ts"
export type { OptimizerOptions } from "./optimizer.ts"
