import { describe, expect, it } from "vitest"
import { philox, Random } from "../../src/util/random.ts"

describe("philox", () => {
  // The known answers of the Random123 library (kat_vectors, philox4x32 with 10 rounds).
  it.each([
    {
      counter: [0, 0, 0, 0],
      key: [0, 0],
      words: [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
    },
    {
      counter: [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
      key: [0xffffffff, 0xffffffff],
      words: [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
    },
    {
      counter: [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
      key: [0xa4093822, 0x299f31d0],
      words: [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
    },
  ] as const)("gives the published words for key $key", ({ counter, key, words }) => {
    expect(philox(key, counter)).toEqual(words)
  })

  it("changes about half of its bits with any one bit of its input", () => {
    const bits = (words: readonly number[]) => words.map((word) => (word >>> 0).toString(2).padStart(32, "0")).join("")
    const base = bits(philox([7, 8], [1, 2, 3, 4]))
    for (let bit = 0; bit < 192; bit++) {
      const input = [7, 8, 1, 2, 3, 4]
      input[bit >> 5]! ^= 1 << (bit & 31)
      const [k0, k1, c0, c1, c2, c3] = input as [number, number, number, number, number, number]
      const changed = bits(philox([k0, k1], [c0, c1, c2, c3]))
      const flips = [...changed].filter((digit, i) => digit !== base[i]).length
      // 64 ± 5.7, so six deviations.
      expect(Math.abs(flips - 64), `bit ${bit}`).toBeLessThan(34)
    }
  })
})

describe("a stream", () => {
  it("is a function of its seed", () => {
    const numbers = (seed: number) => {
      const random = new Random(seed)
      return Array.from({ length: 5 }, () => random.uint32())
    }
    expect(numbers(1)).toEqual(numbers(1))
    expect(numbers(2)).not.toEqual(numbers(1))
  })

  it("uses all 53 bits of a seed", () => {
    expect(new Random(2 ** 40 + 1).key).toEqual([1, 256])
    expect(new Random(2 ** 40 + 1).uint32()).not.toBe(new Random(1).uint32())
  })

  it("is uniform in [0, 1), in 64 bins and in all its digits", () => {
    const random = new Random(3)
    const bins = new Array<number>(64).fill(0)
    const low = new Array<number>(64).fill(0)
    const draws = 64_000
    for (let i = 0; i < draws; i++) {
      const value = random.uniform()
      expect(value >= 0 && value < 1).toBe(true)
      bins[Math.floor(value * 64)]!++
      low[Math.floor(((value * 2 ** 20) % 1) * 64)]!++
    }
    // Chi-square with 63 degrees of freedom: 63 ± 11.2, so four deviations.
    for (const counts of [bins, low]) {
      const chiSquare = counts.reduce((sum, count) => sum + (count - draws / 64) ** 2 / (draws / 64), 0)
      expect(Math.abs(chiSquare - 63)).toBeLessThan(45)
    }
  })

  it("draws below a limit without bias", () => {
    const random = new Random(4)
    const counts = new Array<number>(7).fill(0)
    for (let i = 0; i < 70_000; i++) counts[random.below(7)]!++
    const chiSquare = counts.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0)
    expect(chiSquare).toBeLessThan(6 + 4 * Math.sqrt(12))
    expect(random.below(1)).toBe(0)
    // Of a limit just above 2^31, remainders alone would give the lower half twice as often.
    const large = Array.from({ length: 2000 }, () => random.below(2 ** 31 + 1))
    expect(large.filter((value) => value < 2 ** 30).length).toBeGreaterThan(850)
    expect(large.filter((value) => value < 2 ** 30).length).toBeLessThan(1150)
  })

  it("shuffles: the same items, every order as likely", () => {
    const random = new Random(5)
    const items = ["a", "b", "c", "d"] as const
    const orders = new Map<string, number>()
    for (let i = 0; i < 24_000; i++) {
      const order = random.shuffled(items).join("")
      orders.set(order, (orders.get(order) ?? 0) + 1)
    }
    expect([...orders.keys()].every((order) => [...order].sort().join("") === "abcd")).toBe(true)
    expect(orders.size).toBe(24)
    const chiSquare = [...orders.values()].reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)
    expect(chiSquare).toBeLessThan(23 + 4 * Math.sqrt(46))
    expect(items).toEqual(["a", "b", "c", "d"])
  })
})

describe("a fork", () => {
  it("does not depend on the numbers drawn from its parent", () => {
    const [fresh, used] = [new Random(1), new Random(1)]
    for (let i = 0; i < 10; i++) used.uint32()
    expect(used.derive("rollout", 3).key).toEqual(fresh.derive("rollout", 3).key)
  })

  it("does not change the numbers of its parent", () => {
    const [forked, plain] = [new Random(1), new Random(1)]
    forked.derive("a")
    expect(forked.uint32()).toBe(plain.uint32())
  })

  it("has a key of its own for every name", () => {
    const random = new Random(1)
    const names: (readonly (number | string)[])[] = [
      [],
      [0],
      [1],
      [0, 0],
      [0, 1],
      [1, 0],
      [2 ** 32],
      [-1],
      [""],
      ["a"],
      ["b"],
      ["ab"],
      ["ba"],
      ["a", "b"],
      ["a", ""],
      ["", "a"],
      ["0"],
      ["1", 0],
      [0, "1"],
      ["\0"],
    ]
    expect(new Set(names.map((name) => random.derive(...name).key.join())).size).toBe(names.length)
    const many = Array.from({ length: 10_000 }, (_, i) =>
      random.derive("step", i % 100, Math.floor(i / 100)).key.join(),
    )
    expect(new Set(many).size).toBe(10_000)
  })

  it("by two names is a fork of a fork", () => {
    expect(new Random(1).derive("a", 2).key).toEqual(new Random(1).derive("a").derive(2).key)
  })

  it("is uncorrelated with its siblings", () => {
    const first = Array.from({ length: 4000 }, (_, i) => new Random(1).derive(i).uniform() - 0.5)
    let sum = 0
    for (let i = 1; i < first.length; i++) sum += first[i]! * first[i - 1]!
    // The mean of products of neighbours: 0 ± (1/12) / √4000, so four deviations.
    expect(Math.abs(sum / first.length)).toBeLessThan(4 / 12 / Math.sqrt(4000))
  })

  it("rejects limits without a valid number", () => {
    for (const limit of [0, -1, 1.5, Number.NaN, 2 ** 32 + 1])
      expect(() => new Random(1).below(limit)).toThrow(/random.below\(.*\): limit must be an integer from 1/)
    expect(new Random(1).below(2 ** 32)).toBeLessThan(2 ** 32)
  })

  it("draws an index by its share", () => {
    const random = new Random(3)
    const counts = [0, 0, 0, 0]
    for (let i = 0; i < 4000; i++) counts[random.weighted([1, 0, 2, 1])]!++
    expect(counts[1]).toBe(0)
    for (const [index, share] of [1000, 0, 2000, 1000].entries())
      expect(Math.abs(counts[index]! - share)).toBeLessThan(150)
    for (const shares of [[], [0, 0], [Number.NaN]])
      expect(() => random.weighted(shares)).toThrow(/one of them above 0/)
  })
})
