import { GigpoError } from "../../errors.ts"
import type { Random } from "../../random.ts"
import type { CardTask } from "./options.ts"

/** Training seeds lie below, test seeds from here on, as in verl-agent. */
const firstTestSeed = 2 ** 16

/**
 * Endless seeds: drawn at random from 0 to 2^16 - 2 for training, and always 65536 upwards for the test. Only the seeds are
 * held out: worlds as small as these deal the same cards from many seeds, so a test deal has often been met in training.
 *
 * @param accepts leaves out the seeds whose deals are not wanted
 */
export function* cardTasks(
  split: "train" | "test",
  random: Random,
  accepts: (seed: number) => boolean = () => true,
): Generator<CardTask, void, undefined> {
  const seeds = split === "train" ? random.fork("card seeds") : undefined
  for (let i = 0; ; i++) {
    const seed = seeds ? seeds.below(firstTestSeed - 1) : firstTestSeed + i
    if (accepts(seed)) yield { seed }
  }
}

export function checkSeed({ seed }: CardTask): number {
  if (Number.isSafeInteger(seed) && seed >= 0) return seed
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The seed of a card task must be a whole number from 0 to 2^53 - 1, not ${seed}.`,
  )
}
