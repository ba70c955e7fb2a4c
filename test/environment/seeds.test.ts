import { expect, it } from "vitest"
import { taskSeeds } from "../../src/environment/seeds.ts"
import { Random } from "../../src/util/random.ts"

function take(split: "train" | "test", count: number, seed: number, name: string): number[] {
  const seeds: number[] = []
  for (const one of taskSeeds(split, new Random(seed), name)) if (seeds.push(one) === count) break
  return seeds
}

it("draws training seeds below 65535 from a named stream", () => {
  const seeds = take("train", 1000, 1, "card seeds")
  expect(seeds.every((seed) => seed >= 0 && seed < 65535)).toBe(true)
  expect(take("train", 1000, 1, "card seeds")).toEqual(seeds)
  expect(take("train", 1000, 2, "card seeds")).not.toEqual(seeds)
  expect(take("train", 1000, 1, "sokoban seeds")).not.toEqual(seeds)
  const draws = new Random(1).derive("card seeds")
  expect(seeds.slice(0, 3)).toEqual([draws.below(65535), draws.below(65535), draws.below(65535)])
})

it("counts test seeds from 65536, for any random generator", () => {
  expect(take("test", 3, 1, "a")).toEqual([65536, 65537, 65538])
  expect(take("test", 3, 2, "b")).toEqual([65536, 65537, 65538])
})
