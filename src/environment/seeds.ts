import type { Random } from "../util/random.ts"

/** Training seeds lie below, test seeds from here on, as in verl-agent. */
const firstTestSeed = 2 ** 16

/**
 * Endless seeds: drawn at random from 0 to 2^16 - 2 for training, and always 65536 upwards for the test.
 *
 * @param name names the stream of draws, so that environments with equal random numbers draw seeds of their own
 */
export function* taskSeeds(split: "train" | "test", random: Random, name: string): Generator<number, never, undefined> {
  const draws = split === "train" ? random.fork(name) : undefined
  for (let i = 0; ; i++) yield draws ? draws.below(firstTestSeed - 1) : firstTestSeed + i
}
