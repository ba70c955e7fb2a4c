import type { Parts } from "../runs/snapshot.ts"
import { GigpoError } from "../util/errors.ts"

/** Parts that take part in a rollout. The others change after it. */
export function playingParts({ hooks, turns, tasks, curriculum, memory }: Parts): Parts {
  return { hooks, turns, tasks, curriculum, memory }
}

/**
 * Checks that no object with a state takes part in both the rollout and the updates: during both, its state would depend on timing.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an object with two such roles.
 */
export function checkApart(learning: Readonly<Record<string, unknown>>, parts: Parts): void {
  for (const [role, part] of Object.entries(playingParts(parts))) {
    const other = Object.keys(learning).find((name) => part?.state && learning[name] === part)
    if (other !== undefined)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `train: the same object is ${other} and ${role}, but with maxStaleness 1 the next rollout runs during the updates: use two objects, or ` +
          "set maxStaleness to 0.",
      )
  }
}
