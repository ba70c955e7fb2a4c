import type { RecordedGroup } from "./recorded.ts"

/**
 * Information of a group about step advantages: the states in which several episodes took different actions, and whether their results
 * differ.
 */
export function tellingOf({ episodes }: RecordedGroup): number {
  const states = new Map<number, { readonly members: Set<number>; readonly actions: Set<string> }>()
  for (const { member, steps } of episodes)
    for (const { stepGroup, action } of steps) {
      const state = states.get(stepGroup) ?? { members: new Set(), actions: new Set() }
      states.set(stepGroup, state)
      state.members.add(member)
      state.actions.add(action)
    }
  const forks = [...states.values()].filter(({ members, actions }) => members.size > 1 && actions.size > 1)
  const isMixed = new Set(episodes.map((episode) => episode.return)).size > 1
  return 2 * forks.length + (isMixed ? 1 : 0)
}
