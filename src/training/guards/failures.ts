import { display, ended } from "../../options/display.ts"
import type { Group } from "../../rollout/hooks.ts"
import { GigpoError } from "../../util/errors.ts"

/**
 * Refuses to learn from what an environment that fails too often left over: that would be another distribution of tasks than the
 * one that was asked for.
 *
 * @param groups all that were played, also those that are not learned from
 * @param most share of the episodes that may have failed, after all retries
 * @param iteration counted from 1
 * @throws GigpoError with the first error's code, and that error as its cause
 */
export function checkFailures(groups: readonly Group[], name: string, most: number, iteration: number): void {
  const episodes = groups.flatMap((group) => group.episodes)
  const failed = episodes.filter(({ outcome }) => outcome === "failed").length
  if (failed <= most * episodes.length) return
  // Judges (hooks.score) may fail an episode without an error.
  const first =
    groups.find((group) => group.episodes.some(({ error }) => error)) ??
    groups.find((group) => group.episodes.some(({ outcome }) => outcome === "failed"))!
  const error = first.episodes.find((episode) => episode.error)?.error
  throw new GigpoError(
    error?.code ?? "ENVIRONMENT_FAILED",
    `${name}: ${failed} of ${episodes.length} episodes of iteration ${iteration} failed, more than the share of ${most} ` +
      `(guards.failureShare) that is allowed. The first was one of task ${first.index}, ${display(first.task)}: ` +
      `${error ? ended(error.message) : "it has no error."} Mend the environment, have failed episodes played again (rollout.maxRetries), or set ` +
      "guards.failureShare to 1 to go on with what is left.",
    { cause: error },
  )
}
