import { display } from "../../options/display.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Random } from "../../util/random.ts"
import { taskSeeds } from "../seeds.ts"
import type { CardTask } from "./options.ts"

/**
 * One task a seed. Only the seeds are held out: worlds as small as these deal the same cards from many seeds, so a test deal
 * has often been met in training.
 *
 * @param accepts leaves out the seeds whose deals are not wanted
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
    `The seed of a card task must be a whole number from 0 to 2^53 - 1, not ${display(seed)}.`,
  )
}
