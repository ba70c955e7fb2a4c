import type { Named } from "../../options/named.ts"
import type { OptionFields } from "../../options/table.ts"
import { beliefStateFields, beliefStateMemory } from "./belief-state.ts"
import { beliefFields, beliefMemory } from "./beliefs.ts"
import { chunkFields, chunkMemory } from "./chunks.ts"
import type { PromptMemory } from "./memory.ts"
import { metaReasoningFields, metaReasoningMemory } from "./meta-reasoning.ts"
import { planFields, planMemory } from "./plan.ts"
import { recentFields, recentMemory } from "./recent.ts"
import { skillFields, skillMemory } from "./skills.ts"
import { stateBlockFields, stateBlockMemory } from "./state.ts"
import { summaryFields, summaryMemory } from "./summary.ts"

/** Built-in prompt memories by their names in configurations. */
export const memories = {
  recent: { fields: recentFields, make: recentMemory },
  state: { fields: stateBlockFields, make: stateBlockMemory },
  summary: { fields: summaryFields, make: summaryMemory },
  chunks: { fields: chunkFields, make: chunkMemory },
  skills: { fields: skillFields, make: skillMemory },
  plan: { fields: planFields, make: planMemory },
  beliefs: { fields: beliefFields, make: beliefMemory },
  "meta-reasoning": { fields: metaReasoningFields, make: metaReasoningMemory },
  "belief-state": { fields: beliefStateFields, make: beliefStateMemory },
} satisfies Readonly<Record<string, Named<OptionFields, PromptMemory>>>
