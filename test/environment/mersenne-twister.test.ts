import { describe, expect, it } from "vitest"
import { MersenneTwister, NumpyRandom, PythonRandom } from "../../src/environment/mersenne-twister.ts"

const range = (length: number) => Array.from({ length }, (_, i) => i)

describe("MersenneTwister", () => {
  it("generates the reference outputs of MT19937 for the authors' seeds", () => {
    const single = MersenneTwister.fromWord(5489)
    expect(single.uint32()).toBe(3499211612)
    for (let i = 2; i < 10_000; i++) single.uint32()
    expect(single.uint32()).toBe(4123659995)
    const array = MersenneTwister.fromWords([0x123, 0x234, 0x345, 0x456])
    expect(range(5).map(() => array.uint32())).toEqual([1067595299, 955945823, 477289528, 4107218783, 4228976476])
  })
})

describe("PythonRandom", () => {
  it.each([
    [0, 3626764237, 0.3852453064766108, 4.231707445859917],
    [42, 2746317213, 0.11133106816568039, 3.1908534983188304],
    [4294967301, 675479763, 0.4854959643072383, 4.229481050604419],
    [9007199254740991, 404802386, 0.5606237592017245, 3.2680846403498975],
  ])("draws words and doubles like CPython for seed %d", (seed, word, double, uniform) => {
    const random = new PythonRandom(seed)
    expect(random.getrandbits(32)).toBe(word)
    expect(random.random()).toBe(double)
    expect(random.uniform(-2, 5)).toBe(uniform)
    expect(new PythonRandom(-seed).getrandbits(32)).toBe(word)
  })

  it("picks, samples and shuffles like CPython", () => {
    const random = new PythonRandom(42)
    expect(range(8).map(() => random.randint(3, 9))).toEqual([8, 3, 3, 8, 5, 4, 4, 4])
    expect(range(5).map(() => random.choice([10, 20, 30, 40, 50]))).toEqual([10, 50, 10, 50, 40])
    expect(random.sample(range(21), 5)).toEqual([1, 0, 2, 6, 7])
    expect(random.sample(range(22), 5)).toEqual([16, 19, 0, 17, 6])
    expect(random.sample(range(85), 6)).toEqual([83, 69, 53, 28, 57, 75])
    expect(random.sample(range(86), 6)).toEqual([35, 0, 20, 54, 43, 19])
    const items = range(10)
    random.shuffle(items)
    expect(items).toEqual([4, 8, 7, 2, 6, 9, 0, 1, 5, 3])
    expect(random.getrandbits(7)).toBe(103)
  })
})

describe("NumpyRandom", () => {
  it.each([
    [0, [0, 0, 1, 0, 3, 763, 192771779, 0, 1]],
    [42, [0, 0, 0, 14, 10, 71, 423734972, 0, 4]],
    [4294967295, [0, 1, 2, 12, 7, 948, 113049152, 0, 6]],
  ])("draws integers like numpy for seed %d", (seed, drawn) => {
    const random = new NumpyRandom(seed)
    expect([1, 2, 3, 16, 17, 1000, 2 ** 31, 1, 7].map((limit) => random.randint(limit))).toEqual(drawn)
  })
})
