import type { Named } from "../options/named.ts"
import type { Fields } from "../options/table.ts"
import { actGuide, actGuideFields } from "./act-guide.ts"
import { cispo, cispoFields } from "./cispo.ts"
import { clipCov, clipCovFields } from "./clip-cov.ts"
import { clippedSurrogate } from "./clipped-surrogate.ts"
import { dgpo, dgpoFields } from "./dgpo.ts"
import { distillation, distillationFields } from "./distillation.ts"
import { dppoKl, dppoKlFields, dppoTv, dppoTvFields } from "./dppo.ts"
import { dro, droFields } from "./dro.ts"
import { gmpo, gmpoFields } from "./gmpo.ts"
import { gspo } from "./gspo.ts"
import { holder, holderFields } from "./holder.ts"
import { klCov, klCovFields } from "./kl-cov.ts"
import { clippedSurrogateFields, gspoFields } from "./options.ts"
import { reinforce } from "./reinforce.ts"
import { sapo, sapoFields } from "./sapo.ts"
import type { TokenLoss } from "./token-loss.ts"

/** The policy losses that ship, by the names that options give them. */
export const losses = {
  "clipped-surrogate": { fields: clippedSurrogateFields, make: clippedSurrogate },
  gspo: { fields: gspoFields, make: gspo },
  gmpo: { fields: gmpoFields, make: gmpo },
  holder: { fields: holderFields, make: holder },
  cispo: { fields: cispoFields, make: cispo },
  sapo: { fields: sapoFields, make: sapo },
  "clip-cov": { fields: clipCovFields, make: clipCov },
  "kl-cov": { fields: klCovFields, make: klCov },
  dro: { fields: droFields, make: dro },
  "dppo-tv": { fields: dppoTvFields, make: dppoTv },
  "dppo-kl": { fields: dppoKlFields, make: dppoKl },
  "act-guide": { fields: actGuideFields, make: actGuide },
  dgpo: { fields: dgpoFields, make: dgpo },
  distillation: { fields: distillationFields, make: distillation },
  reinforce: { fields: {}, make: reinforce },
} satisfies Readonly<Record<string, Named<Fields, TokenLoss>>>
