import type { Random } from "../util/random.ts"

/** First test seed; training seeds are lower. As in verl-agent. */
const firstTestSeed = 2 ** 16

/**
 * Endless seeds of tasks: random numbers from 0 to 2^16 - 2 for training; 65536, 65537, … for the test.
 *
 * @param name - name of the random stream, so that environments with equal `random` draw different seeds
 */
export function* taskSeeds(split: "train" | "test", random: Random, name: string): Generator<number, never, undefined> {
  const draws = split === "train" ? random.derive(name) : undefined
  for (let i = 0; ; i++) yield draws ? draws.below(firstTestSeed - 1) : firstTestSeed + i
}
