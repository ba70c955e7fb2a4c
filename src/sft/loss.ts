import { asTokenLoss } from "../loss/as-token-loss.ts"
import { sftLosses } from "../loss/cloning-losses.ts"
import type { TokenLoss } from "../loss/token-loss.ts"
import { makeNamed } from "../options/named.ts"
import type { ResolvedSftOptions } from "./options.ts"

/** Makes the loss of a supervised fine-tuning. */
export function makeSftLoss(options: ResolvedSftOptions["loss"]): TokenLoss {
  return "use" in options ? asTokenLoss(options.use) : makeNamed<TokenLoss>(sftLosses, options)
}
