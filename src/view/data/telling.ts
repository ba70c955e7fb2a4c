import type { RecordedGroup } from "./recorded.ts"

/**
 * How much a group shows of what its algorithm is about: the states in which several of its episodes stood and did different things,
 * and whether some did better than others.
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
