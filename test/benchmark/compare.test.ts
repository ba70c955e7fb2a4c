import { describe, expect, it } from "vitest"
import { compareEvaluations } from "../../src/benchmark/compare.ts"
import { changed, type Made, madeEvaluation } from "./made.ts"

const once = (tasks: string): Made[][] => Array.from(tasks, (letter) => [letter === "1"])
const close = (value: number) => expect.closeTo(value, 10)

describe("two evaluations of one benchmark", () => {
  it("are compared task by task", () => {
    const [a, b] = [madeEvaluation(once("1111100010")), madeEvaluation(once("0101000000"), { model: { name: "b" } })]
    const { success, ...rest } = compareEvaluations(a, b)
    // Of scipy: binomtest(6, 10).proportion_ci(method="wilson"), ttest_rel(a, b).confidence_interval(), binomtest(4, 4).pvalue.
    const [low, high] = [0.3126737697336583, 0.8318196702937639].map((value) => expect.closeTo(value, 7))
    expect(success!.first).toEqual({ mean: 0.6, low, high, count: 10 })
    expect(success!.difference).toEqual({
      ...{ mean: close(0.4), low: close(0.03059128221082008), high: close(0.76940871778918), count: 10 },
    })
    expect(success!.test).toEqual({ name: "McNemar", first: 4, second: 0, p: close(0.125) })
    expect(success!.onlyFirst).toEqual(["task 0", "task 2", "task 4", "task 8"])
    expect(success!.onlySecond).toEqual([])
    expect(Object.keys(success!.kinds)).toEqual(["heat", "place"])
    expect(success!.kinds.place).toMatchObject({ first: { mean: 0.8, count: 5 }, difference: { mean: close(0.8) } })
    expect(success!.kinds.heat!.difference).toEqual({ mean: 0, low: 0, high: 0, count: 5 })
    expect(rest).toMatchObject({
      ...{ benchmark: "doors@1", tasks: 10, differing: [], unscored: { first: 0, second: 0 } },
      return: { first: { mean: 6 }, second: { mean: 2 }, difference: { mean: close(4), low: close(0.3059128221082) } },
      steps: { difference: { mean: close(-0.8) } },
    })
  })

  it("count the same from the other side", () => {
    const [a, b] = [madeEvaluation(once("1100101")), madeEvaluation(once("0110001"))]
    const [one, other] = [compareEvaluations(a, b).success!, compareEvaluations(b, a).success!]
    expect(other.difference.mean).toBe(-one.difference.mean)
    expect(other.difference.low).toBeCloseTo(-one.difference.high, 12)
    expect(other.test).toEqual({ ...one.test, first: one.test.second, second: one.test.first })
    expect([other.onlyFirst, other.onlySecond]).toEqual([one.onlySecond, one.onlyFirst])
  })

  it("are compared by their tasks' shares where tasks were played more than once", () => {
    const [a, b] = [
      madeEvaluation([
        [true, true],
        [true, false],
        [false, false],
        [true, true],
      ]),
      madeEvaluation([
        [true, false],
        [false, true],
        [false, true],
        [false, false],
      ]),
    ]
    const { success } = compareEvaluations(a, b)
    expect(success!.test).toEqual({ name: "sign", first: 2, second: 1, p: 1 })
    expect(success!.difference).toMatchObject({ mean: close(0.25), count: 4 })
    // Task 0 was solved by both, if not as often.
    expect([success!.onlyFirst, success!.onlySecond]).toEqual([["task 3"], ["task 2"]])
  })

  it("may have been played otherwise, which is told", () => {
    const tasks = once("10")
    const digests = { ...madeEvaluation(tasks).header.digests, prompt: "f".repeat(64) }
    const a = madeEvaluation(tasks)
    const b = madeEvaluation(
      [
        [true, true, false],
        ["failed", false, false],
      ],
      {
        ...{ digests, seed: 8, gigpo: "0.0.1", model: { name: "another" } },
        settings: { temperature: 0, environment: { history: 2, rules: false } },
      },
    )
    const { differing, success, unscored } = compareEvaluations(a, b)
    expect(differing).toEqual([
      { name: "prompt", first: a.header.digests.prompt, second: digests.prompt },
      { name: "repeats", first: 1, second: 3 },
      { name: "seed", first: 7, second: 8 },
      { name: "temperature", first: 0.4, second: 0 },
      { name: "environment.rules", first: undefined, second: false },
    ])
    expect(success!.test.name).toBe("sign")
    expect(unscored).toEqual({ first: 0, second: 1 })
  })

  it("have no return of what failed, which is lost all the same", () => {
    const a = madeEvaluation([["failed"], [true], [true]])
    const b = madeEvaluation([[true], [true], [false]])
    const { success, return: sum, steps } = compareEvaluations(a, b)
    expect(success!.test).toMatchObject({ first: 1, second: 1 })
    expect(sum).toMatchObject({ first: { mean: 10, count: 2 }, second: { mean: 5 }, difference: { mean: 5 } })
    expect(steps!.difference.mean).toBe(-1)
    // Which has not told its kind either.
    const [silent, telling] = [madeEvaluation([["failed"]], {}, []), madeEvaluation([[true]])]
    const none = compareEvaluations(silent, telling)
    expect(none.success!.kinds).toEqual({
      place: expect.objectContaining({ second: expect.objectContaining({ mean: 1 }) }),
    })
    expect(none).not.toHaveProperty("return")
    expect(none).not.toHaveProperty("steps")
  })

  it("may be of an environment that tells of no success, or of no kinds", () => {
    const silent = changed(madeEvaluation(once("10"), {}, []), () => ({ metrics: {}, success: false }))
    expect(compareEvaluations(silent, silent)).not.toHaveProperty("success")
    const plain = madeEvaluation(once("10"), {}, [])
    expect(compareEvaluations(plain, plain).success!.kinds).toEqual({})
  })

  it("are of one benchmark, one version of it, one environment and the same tasks", () => {
    const a = madeEvaluation(once("10"))
    const { digests } = a.header
    const refused: [RegExp, typeof a][] = [
      [
        /different benchmarks: doors@1 and doors@2; evaluate both/,
        madeEvaluation(once("10"), { benchmark: "doors@2" }),
      ],
      [
        /different environments, by the digests of doors@1: 0123456789abcdef and ffffffffffffffff;/,
        madeEvaluation(once("10"), { digests: { ...digests, environment: "f".repeat(64) } }),
      ],
      [/different tasks, from number 2 on: none and task 2;/, madeEvaluation(once("101"))],
      [
        /different tasks, from number 1 on: task 1 and other;/,
        changed(a, ({ key }) => ({ key: key === "task 1" ? "other" : key })),
      ],
    ]
    for (const [message, b] of refused) {
      expect(() => compareEvaluations(a, b)).toThrow(
        expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) }),
      )
    }
  })
})
