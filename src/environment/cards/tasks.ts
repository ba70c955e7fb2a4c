import { display } from "../../options/display.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Random } from "../../util/random.ts"
import { taskSeeds } from "../seeds.ts"
import type { CardTask } from "./options.ts"

/**
 * Tasks of a card environment, one per seed. Only seeds are held out: many seeds deal the same cards, so most test hands occur in
 * training.
 *
 * @param accepts - whether a seed is used
 */
export function* cardTasks(
  split: "train" | "test",
  random: Random,
  accepts: (seed: number) => boolean = () => true,
): Generator<CardTask, void, undefined> {
  for (const seed of taskSeeds(split, random, "card seeds")) if (accepts(seed)) yield { seed }
}

export function checkSeed(task: CardTask | null | undefined): number {
  const seed = task?.seed
  if (Number.isSafeInteger(seed) && seed! >= 0) return seed!
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The seed of a card task must be an integer from 0 to 2^53 - 1, not ${display(seed)}.`,
  )
}
