// Built-in losses of supervised fine-tuning.

export { crossEntropy } from "./cross-entropy.ts"
export { type DpoOptions, dpo } from "./dpo.ts"
