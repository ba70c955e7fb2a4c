import { defining } from "../options/define.ts"
import type { TokenLoss } from "./token-loss.ts"

/**
 * Defines a loss that configurations can name: a factory with name, options and description as properties. An export in
 * src/loss/shipped.ts adds the loss to the registry, the public API, `gigpo algorithms` and docs/algorithms.md.
 */
export const defineLoss = defining<TokenLoss>()
