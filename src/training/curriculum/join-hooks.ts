import type { RolloutHooks } from "../../rollout/hooks.ts"

/**
 * Two sets of hooks as one: of where an episode begins the second has the last word, a group is dropped where either says so, scores of
 * the second are of the first's, and about candidates, sampling, replies and guides the second is asked where the first leaves all as
 * it is. What they remember stays theirs.
 */
export function joinHooks<Task>(
  first: RolloutHooks<Task> | undefined,
  second: RolloutHooks<Task> | undefined,
): RolloutHooks<Task> | undefined {
  if (!first) return second
  const has = (name: keyof RolloutHooks) => first[name] !== undefined || second?.[name] !== undefined
  const joined: RolloutHooks<Task> = {
    begin: async (task, to) => ({ ...(await first.begin?.(task, to)), ...(await second?.begin?.(task, to)) }),
    candidates: async (at, to) => (await first.candidates?.(at, to)) ?? (await second?.candidates?.(at, to)),
    sample: async (turn, to) => await (first.sample ? first : second!).sample!(turn, to),
    async onTurn(turn, to) {
      const decision = (await first.onTurn?.(turn, to)) ?? { kind: "accept" }
      return decision.kind === "accept" ? ((await second?.onTurn?.(turn, to)) ?? decision) : decision
    },
    guide: async (group, to) => (await first.guide?.(group, to)) ?? (await second?.guide?.(group, to)),
    async score(group, to) {
      const episodes = (await first.score?.(group, to)) ?? group.episodes
      return (await second?.score?.({ ...group, episodes }, to)) ?? episodes
    },
    keep: async (group, to) => ((await first.keep?.(group, to)) ?? true) && ((await second?.keep?.(group, to)) ?? true),
    async played(groups, to) {
      await first.played?.(groups, to)
      await second?.played?.(groups, to)
    },
  }
  return Object.fromEntries(Object.entries(joined).filter(([name]) => has(name as keyof RolloutHooks)))
}
