import { integer, number } from "../options/field.ts"
import type { OptionsOf } from "../options/table.ts"
import { seedField } from "../training/evaluation-options.ts"

/** The shape of a small Qwen3-like model (no biases, norms on queries and keys, tied embeddings). */
export const initializeFields = {
  seed: seedField,
  hiddenSize: integer(128, "Numbers that a token is to the model; a multiple of 2 × heads.", { min: 1 }),
  layers: integer(4, "Layers of attention and feed-forward network.", { min: 1 }),
  heads: integer(4, "Attention heads of each layer.", { min: 1 }),
  keyValueHeads: integer(undefined, "Heads of keys and values, which heads share.", {
    min: 1,
    defaultText: "as many as heads",
  }),
  intermediateSize: integer(undefined, "Width of the feed-forward network.", { min: 1, defaultText: "3 × hiddenSize" }),
  initStd: number(undefined, "Standard deviation of the initial weights.", {
    above: 0,
    defaultText: "1 / √hiddenSize",
  }),
  vocabularySize: integer(512, "Most tokens of the tokenizer that is learned from the environment's texts.", {
    min: 1,
  }),
  maxPositions: integer(undefined, "Longest prompt and reply together.", {
    min: 2,
    defaultText: "four times the longest prompt that was seen, at least 256",
  }),
}

/** Options of `initialize`. */
export type InitializeOptions = OptionsOf<typeof initializeFields>
