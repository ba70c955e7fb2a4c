import { describe, expect, it } from "vitest"
import { dpepo } from "../../src/credit/dpepo.ts"
import { drGrpo } from "../../src/credit/dr-grpo.ts"
import { drMas } from "../../src/credit/dr-mas.ts"
import { emaGrpo } from "../../src/credit/ema-grpo.ts"
import { farthestPoints } from "../../src/credit/farthest-points.ts"
import { grpo } from "../../src/credit/grpo.ts"
import { memAgent } from "../../src/credit/mem-agent.ts"
import { parallelVariety } from "../../src/credit/parallel-variety.ts"
import { strata } from "../../src/credit/strata.ts"
import { expectClose } from "./close.ts"
import {
  advantagesOf,
  amongPeers,
  creditOf,
  deviation,
  equalEpisodes,
  expectOrderless,
  keyOf,
  mean,
  outcomeOf,
  returnOf,
  sum,
  type Told,
  worlds,
} from "./worlds.ts"

const firstsOf = (steps: readonly Told[]) => steps.filter(({ turn }) => turn === 0)

describe("emaGrpo", () => {
  const how = { kind: "kind", decay: 0.9, minStd: 0.05, guard: 1.5 }

  it("matches its definition over several iterations", async () => {
    const estimator = emaGrpo(how)
    const moments = new Map<number, [number, number]>()
    let guarded = 0
    for (const steps of worlds) {
      for (const kind of [0, 1]) {
        const returns = firstsOf(steps)
          .filter(({ metrics }) => metrics.kind === kind)
          .map((step) => returnOf(steps, step))
        const now: [number, number] = [mean(returns), mean(returns.map((one) => one * one))]
        const before = moments.get(kind)
        moments.set(kind, before ? [0.9 * before[0] + 0.1 * now[0], 0.9 * before[1] + 0.1 * now[1]] : now)
      }
      const byKind = (step: Told) => {
        const [first, second] = moments.get(step.metrics.kind!)!
        return outcomeOf(steps, step, "none") / (Math.max(Math.sqrt(second - first * first), 0.05) + 1e-6)
      }
      const expected = steps.map((step) => {
        const exceeds = steps.some((other) => other.task === step.task && Math.abs(byKind(other)) > 1.5)
        if (exceeds) guarded++
        return exceeds ? outcomeOf(steps, step, "population") : byKind(step)
      })
      expectClose(await advantagesOf(estimator, steps), expected, 1e-9)
    }
    expect(guarded).toBeGreaterThan(10)
  })

  it("continues from its state as without interruption", async () => {
    const [first, second, third] = worlds
    const whole = emaGrpo(how)
    const [part, rest] = [emaGrpo(how), emaGrpo(how)]
    for (const steps of [first!, second!])
      expect(await advantagesOf(part, steps)).toEqual(await advantagesOf(whole, steps))
    rest.restore!(JSON.parse(JSON.stringify(part.state!())))
    expect(await advantagesOf(rest, third!)).toEqual(await advantagesOf(whole, third!))
    expect(await advantagesOf(emaGrpo(how), third!)).not.toEqual(await advantagesOf(rest, third!))
  })

  it("uses a single kind of task by default", async () => {
    const steps = worlds[0]!
    const returns = firstsOf(steps).map((step) => returnOf(steps, step))
    const width = Math.sqrt(mean(returns.map((one) => one * one)) - mean(returns) ** 2) + 1e-6
    const found = await advantagesOf(emaGrpo({ guard: 1e6 }), steps)
    expectClose(
      found,
      steps.map((step) => outcomeOf(steps, step, "none") / width),
      1e-9,
    )
  })
})

describe("memAgent", () => {
  it("gives all conversations of a sample the advantage of the last one", async () => {
    for (const steps of worlds) {
      const final = (step: Told) => {
        const own = steps.filter((other) => keyOf(other) === keyOf(step))
        const { conversation } = own.find(({ last }) => last)!
        return sum(own.filter((other) => other.conversation === conversation).map(({ reward }) => reward))
      }
      const samples = firstsOf(steps)
      const z = amongPeers(
        samples,
        ({ task }) => String(task),
        final,
        (value, all) => value - mean(all),
      )
      const expected = steps.map((step) => z[samples.findIndex((other) => keyOf(other) === keyOf(step))]!)
      expectClose(await advantagesOf(memAgent(), steps), expected, 1e-9)
    }
  })

  it("equals Dr. GRPO with one conversation", async () => {
    const steps = worlds[0]!.map(({ conversation: _, ...step }) => step)
    expect(await advantagesOf(memAgent(), steps)).toEqual(await advantagesOf(drGrpo(), steps))
  })
})

describe("drMas", () => {
  it("compares, per agent, the episodes in which the agent took a step", async () => {
    for (const steps of worlds) {
      const expected = steps.map((step) => {
        const played = new Map<string, number>()
        for (const other of steps)
          if (other.task === step.task && other.agent === step.agent) played.set(keyOf(other), returnOf(steps, other))
        const returns = [...played.values()]
        if (returns.length < 2 || new Set(returns).size === 1) return 0
        return (returnOf(steps, step) - mean(returns)) / (deviation(returns) + 1e-6)
      })
      expectClose(await advantagesOf(drMas(), steps), expected, 1e-9)
    }
  })

  it("equals GRPO if no step names its agent", async () => {
    const steps = worlds[0]!.map(({ agent: _, ...step }) => step)
    for (const options of [{}, { episodeStatistics: "steps", normalization: "population" }] as const)
      expect(await advantagesOf(drMas(options), steps)).toEqual(await advantagesOf(grpo(options), steps))
  })
})

describe("emaGrpo on an environment with kinds of tasks", () => {
  it("takes them from the metric success/<kind>, wherever in the episode it is reported", async () => {
    for (const steps of worlds) {
      const kindOf = ({ task }: Told) => (Number(task) % 2 === 0 ? "pick" : "clean")
      const told = steps.map((step) => {
        const metrics = step.turn === 0 && step.task !== 1 ? {} : { [`success/${kindOf(step)}`]: 0 }
        const isLonely = !steps.some((other) => keyOf(other) === keyOf(step) && other.turn > 0)
        return {
          ...step,
          record: { ...step.record!, metrics: isLonely ? { [`success/${kindOf(step)}`]: 0 } : metrics },
        }
      })
      const named = emaGrpo({ kind: (_step, row) => kindOf(told[row]!) })
      const expected = await creditOf(named, told)
      expect((await creditOf(emaGrpo(), told)).advantages).toEqual(expected.advantages)
    }
  })

  it("treats all tasks alike without such a metric", async () => {
    const steps = worlds[0]!
    const alike = await creditOf(emaGrpo({ kind: () => "one" }), steps)
    expect((await creditOf(emaGrpo(), steps)).advantages).toEqual(alike.advantages)
    const apart = await creditOf(emaGrpo({ kind: (_step, row) => String(steps[row]!.task) }), steps)
    expect(apart.advantages).not.toEqual(alike.advantages)
  })
})

describe("strata", () => {
  const zScore = (value: number, all: readonly number[]) => (value - mean(all)) / (deviation(all) + 1e-6)

  it("matches its definition", async () => {
    for (const topShare of [0.5, 0.3, 1])
      for (const steps of worlds) {
        const follows = ({ task, metrics }: Told) => `${task} ${metrics.strategy}`
        const episodes = firstsOf(steps)
        const actions = amongPeers(episodes, follows, (step) => returnOf(steps, step), zScore)
        const worth = (step: Told) => {
          const returns = episodes
            .filter((other) => follows(other) === follows(step))
            .map((one) => returnOf(steps, one))
          return mean(returns.sort((a, b) => b - a).slice(0, Math.ceil(topShare * returns.length)))
        }
        const strategies = episodes.filter((one) => episodes.find((other) => follows(other) === follows(one)) === one)
        const plans = amongPeers(strategies, ({ task }) => String(task), worth, zScore)
        const expected = steps.map((step) => {
          const { plan, judged } = step.metrics
          const action = actions[episodes.findIndex((other) => keyOf(other) === keyOf(step))]!
          const planned = plans[strategies.findIndex((other) => follows(other) === follows(step))]!
          return (plan === 1 ? planned : action) - (judged === 1 ? 0.1 : 0)
        })
        const found = await creditOf(
          strata({ topShare, strategy: "strategy", planning: "plan", judgement: "judged" }),
          steps,
        )
        expectClose(found.advantages as Float64Array, expected, 1e-9)
      }
  })

  it("takes the first action of an episode as its strategy, and the first step as the one that wrote it", async () => {
    for (const steps of worlds) {
      const firstOf = (step: Told) => steps.find((other) => keyOf(other) === keyOf(step) && other.turn === 0)!
      const told = steps.map((step) => ({ ...step, metrics: { ...step.metrics, plan: step.turn === 0 ? 1 : 0 } }))
      const named = told.map((step) => ({
        ...step,
        record: { ...step.record!, metrics: { ...step.metrics, strategy: firstOf(step).record!.action.length } },
      }))
      const acted = named.map((step) => ({
        ...step,
        record: { ...step.record, action: "x".repeat(step.record.action.length) },
      }))
      const expected = await creditOf(strata({ strategy: "strategy", planning: "plan" }), acted)
      expect((await creditOf(strata(), acted)).advantages).toEqual(expected.advantages)
    }
  })

  it("rejects steps without a strategy", async () => {
    await expect(advantagesOf(strata({ strategy: "style" }), worlds[0]!)).rejects.toThrow(
      /no step has the metric "style"/,
    )
    expect(() => strata({ topShare: 0 })).toThrow(/topShare must be/)
  })
})

describe("dpepo", () => {
  it("weights GRPO advantages by the variety of actions", async () => {
    for (const steps of worlds.slice(0, 4)) {
      const z = await advantagesOf(grpo(), steps)
      const varied = steps.map((_, row) => (row % 4) / 4)
      const { advantages, details } = await creditOf(dpepo({ variety: () => Float64Array.from(varied) }), steps)
      expectClose(
        advantages as Float64Array,
        varied.map((v, row) => (z[row]! >= 0 ? z[row]! * v : z[row]! * (2 - v))),
        1e-12,
      )
      expect(details!.variety).toEqual(Float64Array.from(varied))
    }
  })

  it("counts the actions of each environment, by the lines of actions", async () => {
    const actions = [
      ["a", "look"],
      ["b", "look"],
      ["a", "b"],
      ["b", "b"],
    ]
    const [alpha, gamma, beta, omega] = [0.8, 0.95, 0.9, 0.7]
    // Of each step and environment: the action before, the pair before, the pair in the other environment; and actions twice at once.
    const counts = [
      {
        of: [
          [0, 0, 0],
          [0, 0, 0],
        ],
        same: 0,
      },
      {
        of: [
          [0, 0, 0],
          [1, 0, 0],
        ],
        same: 0,
      },
      {
        of: [
          [1, 0, 0],
          [0, 0, 0],
        ],
        same: 0,
      },
      {
        of: [
          [1, 1, 0],
          [1, 0, 0],
        ],
        same: 1,
      },
    ]
    const expected = counts.map(({ of, same }) => {
      const kinds = of.map(([a, t, w]) => (alpha ** a! + gamma ** t! + beta ** w!) / 3)
      return (omega ** same + mean(kinds)) / 2
    })
    const options = { actionBase: alpha, pairBase: gamma, otherPairBase: beta, sameBase: omega }
    expectClose(parallelVariety(actions, options), expected, 1e-12)
    const pairs = parallelVariety(
      [
        ["x", "x"],
        ["y", "y"],
      ],
      options,
    )
    expectClose(pairs, [(omega + 1) / 2, (omega + (1 + 1 + beta) / 3) / 2], 1e-12)

    const steps = [0, 1].flatMap((episode) =>
      actions.map((lines, turn) => ({
        task: 0,
        episode,
        reward: episode === 1 && turn === 3 ? 1 : 0,
        record: { observation: { text: "", anchor: "" }, text: "", action: lines.join("\n") },
      })),
    )
    const { details } = await creditOf(dpepo(options), steps)
    expectClose(details!.variety!, [...expected, ...expected], 1e-12)
  })

  // By hand, from the four bases 0.8 (a), 0.95 (t and w) and 0.8 (d).
  const kind = (a: number, t = 0, w = 0) => (0.8 ** a + 0.95 ** t + 0.95 ** w) / 3
  const of = (d: number, ...kinds: readonly number[]) => (0.8 ** d + mean(kinds)) / 2
  it.each([
    [
      "one that is over early",
      ["a|a", "b|", "b|", "b|"],
      [of(1, kind(0), kind(0)), of(0, kind(0)), of(0, kind(1)), of(0, kind(2, 1))],
    ],
    [
      "several that end at different steps",
      ["a|b|c", "a|b|", "a||", "c||"],
      [of(0, 1, 1, 1), of(0, kind(1), kind(1)), of(0, kind(2, 1)), of(0, 1)],
    ],
    ["two that are over, which are not the same", ["a|b|c", "d||", "e||"], [of(0, 1, 1, 1), 1, 1]],
    [
      "one that is over between two that act alike",
      ["a|c|a", "b|d|b", "e||a", "f||b"],
      [of(1, 1, 1, 1), of(1, kind(0, 0, 1), 1, kind(0, 0, 1)), of(0, 1, kind(1)), of(0, 1, kind(1, 1, 1))],
    ],
    ["one that is over no longer lends its pairs", ["x|a", "a|b", "b|"], [1, 1, 1]],
    [
      "one that ends before another repeats its pair",
      ["a|c", "b|a", "|b", "|a", "|b"],
      [1, 1, of(0, kind(0)), of(0, kind(1)), of(0, kind(1, 1))],
    ],
    ["one that gets no action for a step", ["a|b", "|b", "a|b"], [1, of(0, kind(1)), of(0, kind(1), kind(2, 1))]],
    ["a space alone", ["a| ", "a|  "], [1, of(0, kind(1))]],
    ["no environment that acts", ["a|b", "|", "c|d"], [1, 0.5, 1]],
    ["all that are over from the first step on", ["|", "|"], [0.5, 0.5]],
  ] as const)("leaves out what gets no action: %s", (_, lines, expected) => {
    expectClose(parallelVariety(lines.map((line) => line.split("|"))), [...expected], 1e-12)
  })

  it("ignores environments without actions", () => {
    const live = [["a"], ["b"], ["a"], ["b"], ["b"]]
    const beside = live.map(([action]) => ["", action!, ""])
    expect(parallelVariety(beside)).toEqual(parallelVariety(live))
    expect(parallelVariety([["", ""]], { noAction: 0.25 })).toEqual(Float64Array.of(0.25))
  })

  it("rejects steps with different numbers of actions, or none", () => {
    expect(() => parallelVariety([["a", "b"], ["a"]])).toThrow(/step 1 has 1 actions, the first 2/)
    expect(() => parallelVariety([[]])).toThrow(/step 0 has 0 actions/)
    expect(() => parallelVariety([], { actionBase: 2 })).toThrow(/parallelVariety: actionBase must be/)
  })
})

describe("farthestPoints", () => {
  it("selects the farthest point from all selected ones, the first of equals", () => {
    const points = [
      [1, 0],
      [1, 0.1],
      [0, 2],
      [-1, 0.01],
      [0, 1],
    ]
    expect(farthestPoints(points, 3)).toEqual([0, 3, 2])
    expect(farthestPoints(points, 5)).toEqual([0, 3, 2, 1, 4])
    expect(farthestPoints(points, 1, 4)).toEqual([4])
  })

  it("rejects to select more points than there are", () => {
    for (const [count, first] of [
      [6, 0],
      [0, 0],
      [1, 5],
      [1, -1],
    ] as const)
      expect(() => farthestPoints([[1], [1], [1], [1], [1]], count, first)).toThrow(/cannot pick/)
  })
})

describe.each([
  ["ema-grpo", () => emaGrpo({ kind: "kind" })],
  ["mem-agent", () => memAgent()],
  ["dr-mas", () => drMas()],
  ["strata", () => strata()],
  ["dpepo", () => dpepo({ variety: "kind" })],
] as const)("%s", (name, make) => {
  it("does not depend on the order of episodes", () => expectOrderless(make))

  it("gives exactly 0 for equal rewards", async () => {
    for (const reward of [10, 0.1, -3e7])
      expect((await advantagesOf(make(), equalEpisodes(reward))).every((value) => value === 0)).toBe(true)
  })

  it("is selected by its name, and needs groups", () => expect(make()).toMatchObject({ name, groups: "needed" }))
})
