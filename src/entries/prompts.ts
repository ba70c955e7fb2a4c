// `gigpo/prompts`: prompt memories, and parsers of actions in completions.

import "../check-node.mts"

export { type PromptOptions, readAction, rememberTurns } from "../environment/agent.ts"
export { type BeliefStateOptions, beliefStateMemory } from "../environment/memory/belief-state.ts"
export { type BeliefOptions, beliefMemory } from "../environment/memory/beliefs.ts"
export { type ChunkOptions, chunkMemory } from "../environment/memory/chunks.ts"
export type {
  EpisodeMemory,
  HistoryFormatter,
  MemoryContext,
  MemoryPrompt,
  ModelCallOptions,
  PromptMemory,
  RememberedEpisode,
} from "../environment/memory/memory.ts"
export { type MetaReasoningOptions, metaReasoningMemory } from "../environment/memory/meta-reasoning.ts"
export { type PlanOptions, planMemory } from "../environment/memory/plan.ts"
export { type RecentOptions, recentMemory } from "../environment/memory/recent.ts"
export { type SkillOptions, skillMemory } from "../environment/memory/skills.ts"
export { type StateBlockOptions, stateBlockMemory } from "../environment/memory/state.ts"
export { type SummaryOptions, summaryMemory } from "../environment/memory/summary.ts"
export { firstContained, readTagged, type TaggedCompletion } from "../environment/tags.ts"
