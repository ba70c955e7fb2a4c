import { withDefaults } from "../options/defaults.ts"
import { without } from "../options/fixed.ts"
import type { Named } from "../options/named.ts"
import type { Fields } from "../options/table.ts"
import { a2tgpo, a2tgpoFields } from "./a2tgpo.ts"
import { dpepo, dpepoFields } from "./dpepo.ts"
import { drGrpo } from "./dr-grpo.ts"
import { drMas, drMasFields } from "./dr-mas.ts"
import { emaGrpo, emaGrpoFields } from "./ema-grpo.ts"
import type { Estimator } from "./estimator.ts"
import { gdpo, gdpoFields } from "./gdpo.ts"
import { gigpo } from "./gigpo.ts"
import { gpg } from "./gpg.ts"
import { grpo, rloo } from "./grpo.ts"
import { hgpo, hgpoFields } from "./hgpo.ts"
import { igpo, igpoFields } from "./igpo.ts"
import { memAgent, memAgentFields } from "./mem-agent.ts"
import { mica, micaFields } from "./mica.ts"
import { opo, opoFields } from "./opo.ts"
import { gigpoFields, grpoFields, outcomeFields } from "./options.ts"
import { passAtK, passAtKFields } from "./pass-at-k.ts"
import { ppo, ppoFields } from "./ppo.ts"
import { presets } from "./presets.ts"
import { rebel, rebelFields } from "./rebel.ts"
import { reinforcePlusPlus, reinforcePlusPlusFields } from "./reinforce-plus-plus.ts"
import { reinforcePlusPlusBaseline } from "./reinforce-plus-plus-baseline.ts"
import { remax, remaxFields } from "./remax.ts"
import { rewardFlow, rewardFlowFields } from "./reward-flow.ts"
import { strata, strataFields } from "./strata.ts"
import { gigpoTree, gigpoTreeFields } from "./tree.ts"
import { vinePpo, vinePpoFields } from "./vine-ppo.ts"
import { vpr, vprFields } from "./vpr.ts"

/** What makes PPO's decisions steps, each of them counted once. */
const overSteps = { level: "step", whitenOver: "steps" } as const

/**
 * The estimators that stand alone, by the names that options give them. Those of GiGPO that name a code
 * are GiGPO with the defaults of a preset.
 */
export const plainEstimators = {
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
  "step-ppo": { fields: withDefaults(ppoFields, overSteps), make: ppo },
  "turn-ppo": { fields: withDefaults(ppoFields, { ...overSteps, deviation: "population" }), make: ppo },
  "vine-ppo": { fields: vinePpoFields, make: vinePpo },
  hgpo: { fields: hgpoFields, make: hgpo },
  "reward-flow": { fields: rewardFlowFields, make: rewardFlow },
  rebel: { fields: rebelFields, make: rebel },
  "gigpo-tree": { fields: gigpoTreeFields, make: gigpoTree },
  vpr: { fields: vprFields, make: vpr },
  a2tgpo: { fields: a2tgpoFields, make: a2tgpo },
  igpo: { fields: igpoFields, make: igpo },
  mica: { fields: micaFields, make: mica },
  "ema-grpo": { fields: emaGrpoFields, make: emaGrpo },
  "mem-agent": { fields: memAgentFields, make: memAgent },
  "dr-mas": { fields: drMasFields, make: drMas },
  strata: { fields: strataFields, make: strata },
  dpepo: { fields: dpepoFields, make: dpepo },
} satisfies Readonly<Record<string, Named<Fields, Estimator>>>
