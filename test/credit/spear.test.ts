import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { emaGrpo } from "../../src/credit/ema-grpo.ts"
import type { Credit, Estimator, EstimatorStep } from "../../src/credit/estimator.ts"
import { gigpo } from "../../src/credit/gigpo.ts"
import { grpo } from "../../src/credit/grpo.ts"
import { imitationWeight, spear } from "../../src/credit/spear.ts"
import { sampledTokens } from "../../src/engine/sequence.ts"
import type { StateDict } from "../../src/util/state.ts"
import { expectClose } from "./close.ts"
import { advantagesOf, context, creditOf, keyOf, returnOf, type Told, worlds } from "./worlds.ts"

/** A world whose steps were sampled: the prompt tells which step it was. */
const sampled = (steps: readonly Told[], iteration: number): Told[] =>
  steps.map((step, row) => {
    const prompt = Int32Array.of(1000 + iteration, row)
    const completion = Int32Array.from({ length: step.length }, (_, token) => token + 1)
    const logProbs = Float32Array.from(completion, (token) => -token / 8)
    return { ...step, record: { ...step.record!, prompt, completion, logProbs } as EstimatorStep }
  })
const iterations = worlds.map(sampled)

const play = async (estimator: Estimator, from: number, to: number): Promise<Credit[]> => {
  const found: Credit[] = []
  for (let at = from; at < to; at++) found.push(await creditOf(estimator, iterations[at]!, undefined, context(at, 12)))
  return found
}

/** What a checkpoint keeps of it. */
const saved = ({ json, arrays }: StateDict): StateDict => ({
  json: JSON.parse(JSON.stringify(json ?? null)),
  arrays: structuredClone(arrays!),
})

const median = (values: readonly number[]) => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted.length % 2 === 1
    ? sorted[(sorted.length - 1) / 2]!
    : (sorted[sorted.length / 2]! + sorted[sorted.length / 2 - 1]!) / 2
}

const how = {
  estimator: { name: "grpo" },
  turnReward: 0,
  warmup: 0,
  capacity: 5,
  keepGroups: 1,
  minAdvantage: 0.5,
  maxAge: 2,
} as const

const sequencesOf = ({ replay }: Credit) => replay?.sequences ?? []

/** Four tasks of two episodes with one step each, with equal rewards within a task. */
const equalTasks = () =>
  sampled(
    [0, 1, 2, 3].flatMap((task) =>
      ["a", "b"].map((episode) => ({ ...worlds[0]![0]!, task, episode, reward: task })),
    ) as never,
    0,
  )

/** Numbers of the authors' functions (test/fixtures/README.md). */
const reference = JSON.parse(readFileSync(new URL("../fixtures/spear.json", import.meta.url), "utf8")) as {
  readonly settings: Readonly<Record<"capacity" | "maxAge" | "turnRewardDecay" | "keepGroups", number>>
  readonly iterations: readonly {
    /** Task, reward, number of steps, return and advantage. */
    readonly episodes: readonly (readonly (number | null)[])[]
    readonly size: number
    /** Iteration, step and advantage. */
    readonly replayed: readonly (readonly number[])[]
  }[]
}

interface Stored {
  readonly key: string
  readonly outcome: number
  readonly iteration: number
}

describe("spear", () => {
  it.each([
    { capacity: 9, maxAge: 2 },
    { capacity: 12, maxAge: 3 },
    { capacity: 30, maxAge: 10 },
    { capacity: 12, maxAge: 1 },
  ])("replays once a buffer is 1.5 times full, then forgets it, with %j", async ({ capacity, maxAge }) => {
    const credits = await play(spear({ ...how, capacity, maxAge, coefficient: 0.5 }), 0, worlds.length)
    const means: number[] = []
    let buffer: Stored[] = []
    let [replays, waits] = [0, 0]
    for (const [now, credit] of credits.entries()) {
      const { metrics, replay } = credit
      const replayed = sequencesOf(credit)
      const baseline = means.length === 0 ? 0 : median(means)
      const isFull = buffer.filter(({ outcome }) => outcome > baseline).length > 1.5 * capacity
      const good = new Map(buffer.filter(({ outcome }) => outcome >= baseline).map((one) => [one.key, one]))
      expect(replayed).toHaveLength(isFull ? Math.min(capacity, good.size) : 0)
      expect(replay?.weight).toBe(isFull ? 0.5 : undefined)
      expect(new Set(replayed.map(({ tokens }) => `${tokens[0]},${tokens[1]}`)).size).toBe(replayed.length)
      for (const { tokens, segments } of replayed) {
        const { outcome } = good.get(`${tokens[0]},${tokens[1]}`)!
        expect(segments[0]!.advantage as number).toBeCloseTo(outcome - baseline, 9)
      }
      if (isFull) buffer = []
      replays += isFull ? 1 : 0
      waits += !isFull && buffer.length > 0 ? 1 : 0
      const newest = Math.max(...buffer.map(({ iteration }) => iteration))
      buffer = buffer.filter(({ iteration }) => newest - iteration <= maxAge)
      const steps = iterations[now]!
      const advantages = await advantagesOf(grpo(), steps)
      for (const [row, step] of steps.entries())
        if (advantages[row]! > 0.5)
          buffer.push({ key: `${1000 + now},${row}`, outcome: returnOf(steps, step), iteration: now })
      for (const task of [0, 1, 2, 3]) {
        const firsts = steps.filter((step) => step.task === task && step.turn === 0)
        if (firsts.length > 0) means.push(firsts.reduce((sum, step) => sum + returnOf(steps, step), 0) / firsts.length)
      }
      expect(metrics).toMatchObject({ "replay/size": buffer.length, "replay/sequences": replayed.length })
    }
    expect([replays > 0, waits > 0]).toEqual([true, true])
  })

  it("keeps the sampled log-probabilities, and the advantages of the inner estimator", async () => {
    const [, second] = await play(spear(how), 0, 2)
    const [
      {
        tokens,
        segments: [segment],
      } = { tokens: undefined, segments: [] },
    ] = sequencesOf(second!)
    const step = iterations[0]![tokens![1]!]!
    expect([segment!.start, segment!.length]).toEqual([2, step.length])
    expectClose(segment!.logProbs!, (step.record as unknown as { logProbs: Float32Array }).logProbs)
    expect(second!.advantages).toEqual((await creditOf(grpo(), iterations[1]!)).advantages)
    expect(second!.skip).toBeUndefined()
    expect(sampledTokens(sequencesOf(second!))).toBeGreaterThan(0)
  })

  it("ignores tokens that were not sampled, and marks steps sampled with a hint, also after a resume", async () => {
    const marked = (steps: readonly Told[]) =>
      steps.map((step, row) => {
        const forced = Uint8Array.from({ length: step.length }, (_, token) => (token === 0 ? 1 : 0))
        const more = { ...(row % 2 === 0 && { forced }), ...(row % 3 === 0 && { offPolicy: true }) }
        return { ...step, record: { ...step.record!, ...more } }
      })
    const wide = { ...how, capacity: 15, minAdvantage: -10 }
    const [first, second] = [spear(wide), spear(wide)]
    await creditOf(first, marked(iterations[0]!), undefined, context(0, 12))
    second.restore!(saved(first.state!()))
    const credit = await creditOf(second, iterations[1]!, undefined, context(1, 12))
    const kinds = new Set<string>()
    for (const { tokens, segments } of sequencesOf(credit)) {
      const [row, segment] = [tokens[1]!, segments[0]!]
      const expected = Float32Array.from({ length: segment.length }, (_, token) => (token === 0 ? 0 : 1))
      expect(segment.weights).toEqual(row % 2 === 0 ? expected : undefined)
      expect(segment.offPolicy).toBe(row % 3 === 0 ? true : undefined)
      kinds.add(`${row % 2} ${row % 3 === 0}`)
    }
    expect(kinds.size).toBe(4)
  })

  it("continues from its state as without interruption, like its inner estimator", async () => {
    const make = () => spear({ ...how, estimator: emaGrpo({ decay: 0.5 }), capacity: 7 })
    const all = async (estimator: Estimator, from: number, to: number) =>
      (await play(estimator, from, to)).map((credit) => ({ ...credit, replay: sequencesOf(credit) }))
    const whole = await all(make(), 0, 6)
    const [part, rest] = [make(), make()]
    await all(part, 0, 3)
    rest.restore!(saved(part.state!()))
    expect(await all(rest, 3, 6)).toEqual(whole.slice(3))
    expect(await all(make(), 3, 6)).not.toEqual(whole.slice(3))
  })

  it("draws other steps with other random numbers, and none while its weight is 0", async () => {
    const drawn = async (coefficient: number) => {
      const credits = await play(spear({ ...how, coefficient }), 0, 4)
      return credits.map((credit) => sequencesOf(credit).map(({ tokens }) => tokens[1]!))
    }
    const rows = await drawn(1)
    expect(rows.flat().length).toBeGreaterThan(4)
    expect(rows.flat()).not.toEqual(rows.flat().toSorted((a, b) => a - b))
    expect(await drawn(0)).toEqual([[], [], [], []])
  })

  it("skips the tasks whose returns differ least, of equal ones the last, and leaves them out of the baseline", async () => {
    const means: number[] = []
    const estimator = spear({ ...how, capacity: 1, minAdvantage: -10, keepGroups: 0.5 })
    for (const [now, steps] of iterations.slice(0, 5).entries()) {
      const returns = [0, 1, 2, 3].map((task) =>
        steps.filter((step) => step.task === task && step.turn === 0).map((step) => returnOf(steps, step)),
      )
      const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length
      const width = returns.map((all) => Math.sqrt(mean(all.map((one) => (one - mean(all)) ** 2))))
      const kept = [0, 1, 2, 3].filter((task) => width.filter((one) => one > width[task]! + 1e-9).length < 2)
      const credit = await creditOf(estimator, steps, undefined, context(now, 12))
      expect([...credit.skip!]).toEqual(steps.map(({ task }) => (kept.includes(task as number) ? 0 : 1)))
      for (const { tokens, segments } of sequencesOf(credit)) {
        const before = iterations[tokens[0]! - 1000]!
        const outcome = returnOf(before, before[tokens[1]!]!)
        expect(segments[0]!.advantage as number).toBeCloseTo(outcome - median(means), 9)
      }
      means.push(...kept.map((task) => mean(returns[task]!)))
    }
    const equal = await creditOf(spear({ ...how, keepGroups: 0.75 }), equalTasks())
    expect([...equal.skip!]).toEqual([0, 0, 0, 0, 0, 0, 1, 1])
  })

  it("has the log-probabilities of the trainer where it recomputed them, except with a hint", async () => {
    const estimator = spear({ ...how, minAdvantage: -10 })
    const hinted = iterations[0]!.map((step, row) =>
      row % 2 === 0 ? step : { ...step, record: { ...step.record!, offPolicy: true } },
    )
    const old = hinted.map(({ length }) => new Float32Array(length).fill(-7))
    await creditOf(estimator, hinted, { old }, context(0, 12))
    const second = await creditOf(estimator, iterations[1]!, undefined, context(1, 12))
    const kinds = new Set(
      sequencesOf(second).map(({ tokens, segments }) => `${tokens[1]! % 2} ${segments[0]!.logProbs![0] === -7}`),
    )
    expect([...kinds].toSorted()).toEqual(["0 true", "1 false"])
  })

  it("rewards the length of an episode in its return, and not in the step returns of GiGPO", async () => {
    const steps = iterations[2]!
    const reward = (step: Told) => 0.75 * Math.min(1, 0.3 * steps.filter((one) => keyOf(one) === keyOf(step)).length)
    const paid = steps.map((step) => ({ ...step, reward: step.reward + (step.last ? reward(step) : 0) }))
    const estimator = spear({ ...how, estimator: { name: "gigpo" }, turnReward: 0.3, turnRewardDecay: 3 })
    const { details } = await creditOf(estimator, steps, undefined, context(0, 12))
    const [plain, all] = [await creditOf(gigpo(), steps), await creditOf(gigpo(), paid)]
    expectClose(details!.episodeAdvantages!, all.details!.episodeAdvantages!, 1e-9)
    expectClose(details!.stepAdvantages!, plain.details!.stepAdvantages!, 1e-9)
    expect(all.details!.stepAdvantages).not.toEqual(plain.details!.stepAdvantages)
    const late = await creditOf(
      spear({ ...how, turnReward: 0.3, turnRewardDecay: 3 }),
      steps,
      undefined,
      context(2, 12),
    )
    expect(late.advantages).toEqual((await creditOf(grpo(), steps)).advantages)
  })

  it("equals the authors' buffer, filter, baseline and reward of turns", async () => {
    const estimator = spear({
      ...reference.settings,
      estimator: { name: "grpo", normalization: "none" },
      turnReward: 0.1,
      warmup: 0,
    })
    let replayed = 0
    for (const [now, { episodes, size, replayed: expected }] of reference.iterations.entries()) {
      const rows = episodes.flatMap(([task, reward, length, outcome, advantage], episode) =>
        Array.from({ length: length! }, (_, turn) => ({ task, reward, length, outcome, advantage, episode, turn })),
      )
      const steps = rows.map(({ task, reward, length, episode, turn }, row) => ({
        ...{ task, episode: String(episode), anchor: "", valid: true, length: 1 },
        reward: turn + 1 === length ? reward! : 0,
        record: {
          ...{ observation: { text: "", anchor: "" }, text: "", action: "" },
          ...{ prompt: Int32Array.of(now, row), completion: Int32Array.of(1), logProbs: Float32Array.of(-1) },
        },
      }))
      const credit = await creditOf(estimator, steps as never, undefined, context(now, 12))
      const own = rows.map((_, row) => (credit.skip?.[row] === 1 ? null : (credit.advantages[row] as number)))
      expect(own.map((one) => one === null)).toEqual(rows.map(({ advantage }) => advantage === null))
      expectClose(
        own.map(Number),
        rows.map(({ advantage }) => Number(advantage)),
        1e-9,
      )
      expectClose(
        credit.details!.episodeReturns!,
        rows.map(({ outcome }) => outcome!),
        1e-9,
      )
      expect(credit.metrics!["replay/size"]).toBe(size)
      const drawn = sequencesOf(credit)
      expect(drawn).toHaveLength(Math.min(reference.settings.capacity, expected.length))
      for (const { tokens, segments } of drawn) {
        const [, , advantage] = expected.find(([iteration, row]) => iteration === tokens[0] && row === tokens[1])!
        expect(segments[0]!.advantage as number).toBeCloseTo(advantage!, 9)
      }
      replayed += drawn.length
    }
    expect(replayed).toBe(36)
  })

  it("weights by half a cosine during its warm-up", () => {
    const settings = { coefficient: 2, warmup: 200 }
    expectClose(
      [0, 50, 100, 200, 900].map((at) => imitationWeight(at, settings)),
      [0, 2 * 0.1464466094, 1, 2, 2],
      1e-9,
    )
    expect(imitationWeight(0, { coefficient: 1, warmup: 0 })).toBe(1)
  })

  it("rejects steps without tokens, and invalid options", async () => {
    await expect(creditOf(spear(how), worlds[0]!)).rejects.toThrow(/give each step a record with its tokens/)
    expect(() => spear({ keepGroups: 0 })).toThrow(/spear: keepGroups must be/)
    expect(() => spear({ capacity: 0 })).toThrow(/capacity must be/)
  })
})
