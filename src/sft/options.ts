import { dataProblem, type TrainingData } from "../data/data.ts"
import { sftLosses } from "../loss/cloning-losses.ts"
import { customLoss } from "../loss/options.ts"
import { boolean, choice, field, group, integer, oneOf, optionalGroup } from "../options/field.ts"
import { fieldsOf } from "../options/named.ts"
import type { OptionsOf, Resolved } from "../options/table.ts"
import { seedField } from "../training/evaluation-options.ts"
import { sftOptimizerFields } from "../training/optimizer.ts"
import { implicitQFields } from "./implicit-q.ts"

export const sftFields = {
  seed: seedField,
  data: field<
    TrainingData | string | undefined,
    "Chat transcripts, or preference pairs, to learn from: a JSON Lines file."
  >(undefined, "Chat transcripts, or preference pairs, to learn from: a JSON Lines file.", dataProblem, {
    defaultText: "the expert is learned from",
  }),
  loss: choice("cross-entropy", fieldsOf(sftLosses), "What is minimised; dpo learns from preference pairs.", {
    own: customLoss,
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
  successes: boolean(true, "Of recorded episodes learn from those alone that succeeded."),
  tooLong: oneOf(
    "leave-out",
    ["leave-out", "cut"],
    "What becomes of conversations of the data that are longer than the model learns from.",
  ),
  tasks: integer(1000, "Tasks that the expert solves to learn from.", { min: 1 }),
  epochs: integer(10, "Passes over what is learned from.", { min: 1 }),
  batchSteps: integer(64, "Steps of one optimizer step; both replies of a pair count.", { min: 1 }),
  optimizer: group(sftOptimizerFields, "How AdamW takes its steps."),
  checkpointEvery: integer(1, "Write a checkpoint after every so many epochs; the last always is.", { min: 1 }),
}

/** Options of `clone`. */
export type SftOptions = OptionsOf<typeof sftFields>
export type ResolvedSftOptions = Resolved<typeof sftFields>
