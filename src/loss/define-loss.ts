import { defining } from "../options/define.ts"
import type { TokenLoss } from "./token-loss.ts"

/**
 * Loss that configurations can name, in one value: a factory with its name, options and description. One line in
 * src/loss/shipped.ts ships it: the registry, the public API, `gigpo algorithms` and docs/algorithms.md follow from it.
 */
export const defineLoss = defining<TokenLoss>()
