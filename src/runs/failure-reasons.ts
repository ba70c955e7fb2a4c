import { display } from "../options/display.ts"
import type { Episode } from "../rollout/episode.ts"
import type { Group } from "../rollout/hooks.ts"
import type { RolloutSetup } from "../rollout/rollout.ts"

/** Why episodes failed: how many for this reason, and the first of them. */
export interface FailureReason {
  readonly reason: string
  readonly count: number
  readonly task: string
  readonly environment: string
}

/** Reasons that a report holds. */
const most = 5

/** Who plays, for messages. */
export function playerName<Task>({ play, environment }: Pick<RolloutSetup<Task>, "play" | "environment">): string {
  return play ? "play" : environment!.name
}

/** Why the episodes failed that did, for a report; nothing where none did. */
export function failuresOf(
  groups: readonly Group[],
  environment: string,
): { readonly failures?: readonly FailureReason[] } {
  const reasons = groups.flatMap(({ task, episodes }) =>
    episodes
      .filter(({ outcome }) => outcome === "failed")
      .map((episode) => ({ reason: reasonOf(episode), count: 1, task: display(task), environment })),
  )
  const failures = mergeFailures([], reasons).slice(0, most)
  return failures.length > 0 ? { failures } : {}
}

/** Reasons with those that came after them, the most frequent first. Those that differ in numbers alone (ports, seeds) are one. */
export function mergeFailures(known: readonly FailureReason[], more: readonly FailureReason[]): FailureReason[] {
  const merged = new Map<string, FailureReason>()
  for (const one of [...known, ...more]) {
    const key = `${one.environment}: ${one.reason.replaceAll(/\d+/g, "0")}`
    const first = merged.get(key) ?? { ...one, count: 0 }
    merged.set(key, { ...first, count: first.count + one.count })
  }
  return [...merged.values()].sort((a, b) => b.count - a.count)
}

/** Judges (hooks.score) may fail an episode without an error. */
function reasonOf({ error }: Episode): string {
  return error?.message ?? "it has no error"
}
