// Shipped losses of cloning, one line each.

export { crossEntropy } from "./cross-entropy.ts"
export { type DpoOptions, dpo } from "./dpo.ts"
