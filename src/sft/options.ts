import { dataProblem, type TrainingData } from "../data/data.ts"
import { sftLosses } from "../loss/cloning-losses.ts"
import { customLoss } from "../loss/options.ts"
import { boolean, choice, field, group, integer, oneOf, optionalGroup } from "../options/field.ts"
import { fieldsOf } from "../options/named.ts"
import type { OptionsOf, ResolvedOf } from "../options/table.ts"
import { seedField } from "../training/evaluation-options.ts"
import { sftOptimizerFields } from "../training/optimizer.ts"
import { implicitQFields } from "./implicit-q.ts"

export const sftFields = {
  seed: seedField,
  data: field<TrainingData | string | undefined, "JSON Lines file with chat transcripts or preference pairs.">(
    undefined,
    "JSON Lines file with chat transcripts or preference pairs.",
    dataProblem,
    {
      defaultText: "completions of the expert",
    },
  ),
  loss: choice("cross-entropy", fieldsOf(sftLosses), "Loss of the fine-tuning; dpo needs preference pairs.", {
    own: customLoss,
  }),
  implicitQ: optionalGroup(
    implicitQFields,
    "Offline reinforcement learning: weights of the completions of recorded episodes by implicit Q-learning (IQL). Set successfulOnly to false to " +
      "include unsuccessful episodes.",
    "all completions have the same weight",
  ),
  completions: oneOf(
    "all",
    ["all", "last"],
    "Completions of a transcript that are in the loss, where its messages have no weight.",
  ),
  successfulOnly: boolean(true, "Whether only successful episodes are trained on, in the case of recorded episodes."),
  tooLong: oneOf(
    "drop",
    ["drop", "truncate"],
    "Handling of conversations that are longer than the model can train on: drop them or truncate them.",
  ),
  tasks: integer(1000, "Number of tasks that the expert solves.", { min: 1 }),
  epochs: integer(10, "Number of epochs: passes over the data.", { min: 1 }),
  completionsPerUpdate: integer(
    64,
    "Completions per update (TRL: per_device_train_batch_size × gradient_accumulation_steps); both completions of a pair count.",
    { min: 1 },
  ),
  optimizer: group(sftOptimizerFields, "Optimizer (AdamW)."),
  checkpointEvery: integer(1, "Epochs between checkpoints. There is also a checkpoint after the last epoch.", {
    min: 1,
  }),
}

/** Options of `sft`. */
export type SftOptions = OptionsOf<typeof sftFields>
export type ResolvedSftOptions = ResolvedOf<typeof sftFields>
