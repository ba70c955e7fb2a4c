import { withDefaults } from "../options/defaults.ts"
import { without } from "../options/fixed.ts"
import type { Named } from "../options/named.ts"
import type { Fields } from "../options/table.ts"
import { drGrpo } from "./dr-grpo.ts"
import type { Estimator } from "./estimator.ts"
import { gdpo, gdpoFields } from "./gdpo.ts"
import { gigpo } from "./gigpo.ts"
import { gpg } from "./gpg.ts"
import { grpo, rloo } from "./grpo.ts"
import { opo, opoFields } from "./opo.ts"
import { gigpoFields, grpoFields, outcomeFields } from "./options.ts"
import { passAtK, passAtKFields } from "./pass-at-k.ts"
import { ppo, ppoFields } from "./ppo.ts"
import { presets } from "./presets.ts"
import { reinforcePlusPlus, reinforcePlusPlusFields } from "./reinforce-plus-plus.ts"
import { reinforcePlusPlusBaseline } from "./reinforce-plus-plus-baseline.ts"
import { remax, remaxFields } from "./remax.ts"

/** The estimators that ship, by the names that options give them. Those that begin alike are GiGPO with the defaults of a preset. */
export const estimators = {
  gigpo: { fields: gigpoFields, make: gigpo },
  "gigpo-verl-agent": { fields: withDefaults(gigpoFields, presets.verlAgent), make: gigpo },
  "gigpo-roll": { fields: withDefaults(gigpoFields, presets.roll), make: gigpo },
  "gigpo-trinity": { fields: withDefaults(gigpoFields, presets.trinity), make: gigpo },
  grpo: { fields: grpoFields, make: grpo },
  "dr-grpo": { fields: outcomeFields, make: drGrpo },
  rloo: { fields: without(grpoFields, "normalization", "epsilon"), make: rloo },
  "reinforce-plus-plus": { fields: reinforcePlusPlusFields, make: reinforcePlusPlus },
  "reinforce-plus-plus-baseline": { fields: outcomeFields, make: reinforcePlusPlusBaseline },
  opo: { fields: opoFields, make: opo },
  gpg: { fields: outcomeFields, make: gpg },
  remax: { fields: remaxFields, make: remax },
  "pass-at-k": { fields: passAtKFields, make: passAtK },
  gdpo: { fields: gdpoFields, make: gdpo },
  ppo: { fields: ppoFields, make: ppo },
} satisfies Readonly<Record<string, Named<Fields, Estimator>>>
