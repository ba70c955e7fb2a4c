import { describe, expect, it } from "vitest"
import { estimate } from "../../src/credit/as-estimator.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import { drGrpo } from "../../src/credit/dr-grpo.ts"
import type { Estimator, EstimatorContext } from "../../src/credit/estimator.ts"
import { gdpo } from "../../src/credit/gdpo.ts"
import { gpg } from "../../src/credit/gpg.ts"
import { grpo, rloo } from "../../src/credit/grpo.ts"
import { opo } from "../../src/credit/opo.ts"
import { passAtK } from "../../src/credit/pass-at-k.ts"
import { reinforcePlusPlusBaseline } from "../../src/credit/reinforce-plus-plus-baseline.ts"
import { remax } from "../../src/credit/remax.ts"
import { whiten } from "../../src/credit/whiten.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "./close.ts"
import { interleave } from "./steps.ts"

const context: EstimatorContext = { progress: { iteration: 0, iterations: 1 }, random: new Random(0) }

const bad = (message: RegExp) =>
  expect.objectContaining({ code: "BAD_ARGUMENT", message: expect.stringMatching(message) })

interface Step extends BatchStep {
  readonly length: number
  readonly valid: boolean
  readonly kind: number | undefined
}

/** 5 tasks of 1 to 6 episodes of 1 to 4 steps; the returns of the first task are all equal, and the second is a lone episode. */
function randomEpisodes(random: Random): Step[][] {
  const rewards = [0, 0, 0, 1, 2.5, -0.75, 10]
  return Array.from({ length: 5 }, (_, task) =>
    Array.from({ length: task === 0 ? 3 : task === 1 ? 1 : 2 + random.below(5) }, (_, id) => {
      const count = 1 + random.below(4)
      return Array.from({ length: count }, (_, at): Step => {
        const kind = random.below(3) === 0 ? undefined : random.below(4) / 3
        return {
          task,
          episode: id,
          reward: task === 0 ? 0.1 / count : rewards[random.below(rewards.length)]!,
          valid: task === 0 || random.below(4) > 0,
          length: 1 + random.below(9),
          baseline: task / 3,
          kind,
          record: {
            observation: { text: "", anchor: "" },
            text: "",
            action: "",
            metrics: { ...(kind !== undefined && { kind }), at },
          },
        }
      })
    }),
  ).flat()
}

const batches = Array.from({ length: 25 }, (_, seed) => {
  const random = new Random(seed)
  return interleave(random.shuffled(randomEpisodes(random)), random)
})

// The definitions, in loops over plain objects.

interface Episode {
  readonly task: unknown
  readonly value: number
  readonly length: number
}

interface Convention {
  readonly penalty: number
  readonly lone: "zero" | "raw"
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
const mean = (values: readonly number[]) => sum(values) / values.length
const deviation = (values: readonly number[]) =>
  Math.sqrt(sum(values.map((value) => (value - mean(values)) ** 2)) / (values.length - 1))
const keyOf = ({ task, episode }: BatchStep) => `${task}/${episode}`

function episodesOf(steps: readonly Step[], rewardOf: (step: Step) => number): Map<string, Episode> {
  const found = new Map<string, Episode>()
  for (const step of steps) {
    const { task, value, length } = found.get(keyOf(step)) ?? { task: step.task, value: 0, length: 0 }
    found.set(keyOf(step), { task, value: value + rewardOf(step), length: length + step.length })
  }
  return found
}

const paidBy =
  ({ penalty }: Convention) =>
  ({ reward, valid }: Step) =>
    reward - (valid ? 0 : penalty)

/** What `compare` says of each episode and the others of its task, for each step. */
function perEpisode(
  steps: readonly Step[],
  convention: Convention,
  compare: (episode: Episode, group: readonly Episode[]) => number,
  rewardOf = paidBy(convention),
): number[] {
  const episodes = episodesOf(steps, rewardOf)
  return steps.map((step) => {
    const episode = episodes.get(keyOf(step))!
    const group = [...episodes.values()].filter(({ task }) => task === episode.task)
    if (group.length > 1) return compare(episode, group)
    return convention.lone === "raw" ? episode.value : 0
  })
}

const centre = ({ value }: Episode, group: readonly Episode[]) => value - mean(group.map((one) => one.value))

function overTokens(values: readonly number[], steps: readonly Step[]): number[] {
  const tokens = steps.flatMap(({ length }, row) => Array<number>(length).fill(values[row]!))
  return values.map((value) => (value - mean(tokens)) / Math.sqrt(deviation(tokens) ** 2 + 1e-8))
}

const zScore = (convention: Convention, steps: readonly Step[], rewardOf: (step: Step) => number) =>
  perEpisode(
    steps,
    convention,
    (episode, group) => centre(episode, group) / (deviation(group.map(({ value }) => value)) + 1e-6),
    rewardOf,
  ).map((value, row) => {
    const { task } = steps[row]!
    const isLone = steps.every((step) => step.task !== task || step.episode === steps[row]!.episode)
    return isLone ? value / (1 + 1e-6) : value
  })

type Definition = (steps: readonly Step[], convention: Convention) => number[]

const lead = ({ value }: Episode, group: readonly Episode[]) => {
  const [first, second] = group.map((one) => one.value).sort((a, b) => b - a)
  return value === first ? first - second! : 0
}

const definitions: Record<string, readonly [Definition, (options: object) => Estimator]> = {
  grpo: [(steps, convention) => zScore(convention, steps, paidBy(convention)), grpo],
  rloo: [
    (steps, convention) =>
      perEpisode(steps, convention, (episode, group) => (centre(episode, group) * group.length) / (group.length - 1)),
    rloo,
  ],
  "dr-grpo": [(steps, convention) => perEpisode(steps, convention, centre), drGrpo],
  opo: [
    (steps, convention) =>
      perEpisode(
        steps,
        convention,
        ({ value }, group) => value - sum(group.map((one) => one.length * one.value)) / sum(group.map((g) => g.length)),
      ),
    opo,
  ],
  gpg: [
    (steps, convention) => {
      const episodes = [...episodesOf(steps, paidBy(convention)).values()]
      const alpha = episodes.length / Math.max(1, episodes.filter(({ value }) => value !== 0).length)
      return perEpisode(steps, convention, centre).map((value) => alpha * value)
    },
    gpg,
  ],
  "reinforce-plus-plus-baseline": [
    (steps, convention) => overTokens(perEpisode(steps, convention, centre), steps),
    reinforcePlusPlusBaseline,
  ],
  "pass-at-k": [
    (steps, convention) => perEpisode(steps, convention, lead),
    (options) => passAtK({ ...options, normalization: "none" }),
  ],
  "pass-at-k over the deviation": [
    (steps, convention) =>
      perEpisode(
        steps,
        convention,
        (episode, group) => lead(episode, group) / (deviation(group.map(({ value }) => value)) + 0.5),
      ),
    (options) => passAtK({ ...options, epsilon: 0.5 }),
  ],
  gdpo: [
    (steps, convention) => {
      const [reward, kind] = [zScore(convention, steps, paidBy(convention)), (step: Step) => step.kind ?? 0]
      const other = zScore(convention, steps, kind)
      return overTokens(
        reward.map((value, row) => 2 * value - 0.5 * other[row]!),
        steps,
      )
    },
    (options) => gdpo({ ...options, channels: ["reward", "kind"], weights: [2, -0.5] }),
  ],
  "gdpo, whitened over episodes": [
    (steps, convention) => {
      const [reward, kind] = [zScore(convention, steps, paidBy(convention)), (step: Step) => step.kind ?? 0]
      const sums = zScore(convention, steps, kind).map((other, row) => reward[row]! + other)
      const each = sums.filter((_, row) => steps.findIndex((step) => keyOf(step) === keyOf(steps[row]!)) === row)
      const middle = each.reduce((sum, one) => sum + one, 0) / each.length
      const width = Math.sqrt(each.reduce((sum, one) => sum + (one - middle) ** 2, 0) / (each.length - 1)) + 1e-4
      return sums.map((one) => (one - middle) / width)
    },
    (options) => gdpo({ ...options, channels: ["reward", "kind"], whitenOver: "episodes" }),
  ],
}

const advantagesOf = async (estimator: Estimator, steps: readonly BatchStep[]) =>
  (await estimate(estimator, toBatch(steps), context)).advantages as Float64Array

describe.each(Object.entries(definitions))("%s", (_, [definition, make]) => {
  it.each<Convention>([
    { penalty: 0, lone: "zero" },
    { penalty: 0, lone: "raw" },
    { penalty: 0.25, lone: "zero" },
  ])("gives what its definition says, with %j", async (convention) => {
    const estimator = make({ singletonEpisode: convention.lone, invalidActionPenalty: convention.penalty })
    for (const steps of batches) {
      const expected = definition(steps, convention)
      expect(expected.some((value) => Math.abs(value) > 0.1)).toBe(true)
      expectClose(await advantagesOf(estimator, steps), expected, 1e-9)
    }
  })

  it("depends neither on the order of episodes nor on how they interleave", async () => {
    const random = new Random(7)
    for (const steps of batches.slice(0, 5)) {
      const expected = await advantagesOf(make({}), steps)
      const episodes = [...new Set(steps.map(keyOf))].map((key) => steps.filter((step) => keyOf(step) === key))
      const other = interleave(random.shuffled(episodes), random)
      const found = await advantagesOf(make({}), other)
      expectClose(
        steps.map((step) => found[other.indexOf(step)]!),
        expected,
        1e-9,
      )
    }
  })

  it("gives exactly 0 for equal returns, whatever their size and lengths", async () => {
    for (const reward of [10, 0.1, 5.987, -3e7])
      for (let members = 2; members < 12; members++) {
        const same = Array.from({ length: members }, (_, id) =>
          [reward / 7, 0, reward].map((one, at) => ({
            task: "t",
            episode: id,
            reward: one,
            length: 1 + ((id * 5 + at) % 7),
            record: { observation: { text: "", anchor: "" }, text: "", action: "", metrics: { kind: 0.3 } },
          })),
        ).flat()
        expect([...(await advantagesOf(make({}), same))]).toEqual(same.map(() => 0))
      }
  })

  it("rejects invalid options", () => {
    expect(() => make({ singletonEpisode: "one" })).toThrow(bad(/singletonEpisode must be "zero" or "raw"/))
    expect(() => make({ invalidActionPenalty: -1 })).toThrow(bad(/invalidActionPenalty must be/))
    expect(() => make({ singeltonEpisode: "raw" })).toThrow(bad(/did you mean singletonEpisode/))
  })
})

it("estimators of outcomes report tasks without a learning signal and keep the returns", async () => {
  const steps = [
    { task: 0, episode: 0, reward: 1, length: 3 },
    { task: 0, episode: 1, reward: 0, length: 1 },
    { task: 1, episode: 0, reward: 2, length: 1 },
    { task: 1, episode: 1, reward: 2, length: 1 },
  ]
  for (const estimator of [drGrpo(), opo(), gpg(), reinforcePlusPlusBaseline(), passAtK()]) {
    const { metrics, details } = await estimate(estimator, toBatch(steps), context)
    expect(metrics).toEqual({ "group/constant": 1 / 2 })
    expect(details).toEqual({ episodeReturns: Float64Array.of(1, 0, 2, 2) })
  }
  const both = await estimate(gdpo(), toBatch(steps), context)
  expect(both.metrics).toEqual({ "group/constant-reward": 1 / 2 })
})

it("the penalty per row, and a mean over steps, equal grpo without the standard deviation", async () => {
  for (const episodeStatistics of ["episodes", "steps"] as const) {
    const options = { episodeStatistics, penaltyPlacement: "step", invalidActionPenalty: 0.5 } as const
    for (const steps of batches.slice(0, 5))
      expect(await advantagesOf(drGrpo(options), steps)).toEqual(
        await advantagesOf(grpo({ ...options, normalization: "none" }), steps),
      )
  }
  expect(() => opo({ episodeStatistics: "steps" } as object)).toThrow(bad(/opo: episodeStatistics is not an option/))
  expect(() => passAtK({ penaltyPlacement: "step" } as object)).toThrow(bad(/penaltyPlacement is not an option/))
})

it("grpo adds the configured epsilon to the standard deviation", async () => {
  const steps = [0, 1, 2].map((reward, episode) => ({ task: 0, episode, reward }))
  expectClose(await advantagesOf(grpo({ epsilon: 1 }), steps), [-0.5, 0, 0.5])
  expectClose(await advantagesOf(grpo({ epsilon: 0 }), steps), [-1, 0, 1])
  expect(() => grpo({ epsilon: -1 })).toThrow(bad(/grpo: epsilon must be/))
})

it("pass-at-k gives 0 if several episodes are best", async () => {
  const steps = [3, 3, 1].map((reward, episode) => ({ task: 0, episode, reward }))
  expect([...(await advantagesOf(passAtK(), steps))]).toEqual([0, 0, 0])
})

describe("whiten", () => {
  it("counts each value once per token", () => {
    const lengths = Int32Array.of(1, 3, 2)
    const [values, tokens] = [Float64Array.of(4, -1, 2), Float64Array.of(4, -1, -1, -1, 2, 2)]
    const found = whiten(tokens)
    expectClose(whiten(values, lengths), [found[0]!, found[1]!, found[4]!])
    expectClose([sum([...found]), sum([...found].map((x) => x * x))], [0, 5], 1e-7)
  })

  it("gives 0 for equal values, a single value and none", () => {
    expect([...whiten(new Float64Array(9).fill(0.1), new Int32Array(9).fill(7))]).toEqual(Array(9).fill(0))
    expect([...whiten(Float64Array.of(5))]).toEqual([0])
    expect(whiten(new Float64Array(0))).toHaveLength(0)
  })
})

describe("remax", () => {
  const steps: BatchStep[] = [
    { task: "a", episode: 0, reward: 1, baseline: 0.25 },
    { task: "b", episode: 0, reward: 5, baseline: Number.NaN },
    { task: "a", episode: 0, reward: 2, baseline: 0.25, valid: false },
    { task: "a", episode: 1, reward: -1, baseline: 0.25 },
  ]

  it("compares with the greedy episode, and skips tasks without one", async () => {
    const { advantages, skip, metrics, details } = await estimate(remax(), toBatch(steps), context)
    expect(advantages).toEqual(Float64Array.of(2.75, 0, 2.75, -1.25))
    expect(skip).toEqual(Uint8Array.of(0, 1, 0, 0))
    expect(metrics).toEqual({ "greedy/failed": 1 / 4 })
    expect(details).toEqual({ episodeReturns: Float64Array.of(3, 5, 3, -1) })
    expect(await estimate(remax(), toBatch(steps.slice(2)), context)).not.toHaveProperty("skip")
    expect(remax().needs).toEqual(["greedy"])
  })

  it("applies the invalid-action penalty at its placement", async () => {
    expect(await advantagesOf(remax({ invalidActionPenalty: 0.5 }), steps)).toEqual(
      Float64Array.of(2.25, 0, 2.25, -1.25),
    )
    const row = remax({ invalidActionPenalty: 0.5, penaltyPlacement: "step" })
    expect(await advantagesOf(row, steps)).toEqual(Float64Array.of(2.75, 0, 2.25, -1.25))
  })

  it("rejects a batch without baselines, and options of groups", async () => {
    const bare = toBatch([{ task: 0, episode: 0, reward: 1 }])
    await expect(estimate(remax(), bare, context)).rejects.toThrow(bad(/give each step its baseline/))
    expect(() => remax({ singletonEpisode: "raw" } as object)).toThrow(bad(/remax: singletonEpisode is not an option/))
  })
})

describe("gdpo", () => {
  it("rejects unknown reward channels, and lists the known ones", async () => {
    const asked = (channel: string, steps = batches[0]!) => advantagesOf(gdpo({ channels: ["reward", channel] }), steps)
    await expect(asked("knid")).rejects.toThrow(bad(/no step has the metric "knid"; there are "at", "kind"\. Name/))
    const bare = batches[0]!.map(({ record: _, ...step }) => step)
    await expect(asked("kind", bare)).rejects.toThrow(bad(/no step has the metric "kind"; none has any/))
    expect(await advantagesOf(gdpo({ channels: ["kind"] }), [])).toHaveLength(0)
  })

  it.each<[object, RegExp]>([
    [{ channels: [] }, /channels must name at least one channel, each once/],
    [{ channels: ["a", "a"] }, /channels must name at least one channel, each once/],
    [{ channels: "reward" }, /channels must be a list/],
    [{ channels: ["reward", " "] }, /channels must be a list; each entry must be a non-empty string/],
    [{ weights: [1, 2] }, /there are 2 weights for 1 channels; give one per channel, or none/],
    [{ weights: [Number.NaN] }, /weights must be a list; each entry must be a number/],
    [{ normalization: "std" }, /gdpo: normalization is not an option/],
  ])("rejects %j", (options, message) => {
    expect(() => gdpo(options)).toThrow(bad(message))
  })
})
