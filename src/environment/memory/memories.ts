import type { Named } from "../../options/named.ts"
import type { Fields } from "../../options/table.ts"
import { beliefState, beliefStateFields } from "./belief-state.ts"
import { beliefFields, beliefs } from "./beliefs.ts"
import { chunkFields, chunks } from "./chunks.ts"
import type { Memory } from "./memory.ts"
import { metaReasoning, metaReasoningFields } from "./meta-reasoning.ts"
import { plan, planFields } from "./plan.ts"
import { recent, recentFields } from "./recent.ts"
import { skillFields, skills } from "./skills.ts"
import { stateBlock, stateBlockFields } from "./state.ts"
import { summary, summaryFields } from "./summary.ts"

/** Built-in prompt memories by their names in configurations. */
export const memories = {
  recent: { fields: recentFields, make: recent },
  state: { fields: stateBlockFields, make: stateBlock },
  summary: { fields: summaryFields, make: summary },
  chunks: { fields: chunkFields, make: chunks },
  skills: { fields: skillFields, make: skills },
  plan: { fields: planFields, make: plan },
  beliefs: { fields: beliefFields, make: beliefs },
  "meta-reasoning": { fields: metaReasoningFields, make: metaReasoning },
  "belief-state": { fields: beliefStateFields, make: beliefState },
} satisfies Readonly<Record<string, Named<Fields, Memory>>>
