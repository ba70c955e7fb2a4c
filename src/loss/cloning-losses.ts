import type { Named } from "../options/named.ts"
import type { Fields } from "../options/table.ts"
import { crossEntropy } from "./cross-entropy.ts"
import { dpo, dpoFields } from "./dpo.ts"
import type { TokenLoss } from "./token-loss.ts"

/** The losses of what others have said, by the names that options give them. */
export const cloningLosses = {
  "cross-entropy": { fields: {}, make: crossEntropy },
  dpo: { fields: dpoFields, make: dpo },
} satisfies Readonly<Record<string, Named<Fields, TokenLoss>>>
