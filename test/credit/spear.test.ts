import { describe, expect, it } from "vitest"
import { emaGrpo } from "../../src/credit/ema-grpo.ts"
import type { Credit, Estimator, StepRecord } from "../../src/credit/estimator.ts"
import { grpo } from "../../src/credit/grpo.ts"
import { imitationWeight, spear } from "../../src/credit/spear.ts"
import { sampledTokens } from "../../src/engine/sequence.ts"
import type { StateDict } from "../../src/util/state.ts"
import { expectClose } from "./close.ts"
import { advantagesOf, context, creditOf, returnOf, type Told, worlds } from "./worlds.ts"

/** A world whose steps were sampled: the prompt tells which step it was. */
const sampled = (steps: readonly Told[], iteration: number): Told[] =>
  steps.map((step, row) => {
    const prompt = Int32Array.of(1000 + iteration, row)
    const completion = Int32Array.from({ length: step.length }, (_, token) => token + 1)
    const logProbs = Float32Array.from(completion, (token) => -token / 8)
    return { ...step, record: { ...step.record!, prompt, completion, logProbs } as StepRecord }
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
  warmup: 0,
  capacity: 5,
  keepGroups: 1,
  minAdvantage: 0.5,
  maxAge: 2,
} as const

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
    for (const [now, { extraSequences, metrics }] of credits.entries()) {
      const baseline = means.length === 0 ? 0 : median(means)
      const isFull = buffer.filter(({ outcome }) => outcome > baseline).length > 1.5 * capacity
      const good = new Map(buffer.filter(({ outcome }) => outcome >= baseline).map((one) => [one.key, one]))
      expect(extraSequences).toHaveLength(isFull ? Math.min(capacity, good.size) : 0)
      expect(new Set(extraSequences!.map(({ tokens }) => `${tokens[0]},${tokens[1]}`)).size).toBe(
        extraSequences!.length,
      )
      for (const { tokens, segments } of extraSequences!) {
        const { outcome } = good.get(`${tokens[0]},${tokens[1]}`)!
        expect(segments[0]!.advantage as number).toBeCloseTo(0.5 * (outcome - baseline), 9)
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
      expect(metrics).toMatchObject({ "replay/size": buffer.length, "replay/sequences": extraSequences!.length })
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
    ] = second!.extraSequences!
    const step = iterations[0]![tokens![1]!]!
    expect([segment!.start, segment!.length]).toEqual([2, step.length])
    expectClose(segment!.logProbs!, (step.record as unknown as { logProbs: Float32Array }).logProbs)
    expect(second!.advantages).toEqual((await creditOf(grpo(), iterations[1]!)).advantages)
    expect(second!.skip).toBeUndefined()
    expect(sampledTokens(second!.extraSequences!)).toBeGreaterThan(0)
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
    const { extraSequences } = await creditOf(second, iterations[1]!, undefined, context(1, 12))
    const kinds = new Set<string>()
    for (const { tokens, segments } of extraSequences!) {
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
    const whole = await play(make(), 0, 6)
    const [part, rest] = [make(), make()]
    await play(part, 0, 3)
    rest.restore!(saved(part.state!()))
    expect(await play(rest, 3, 6)).toEqual(whole.slice(3))
    expect(await play(make(), 3, 6)).not.toEqual(whole.slice(3))
  })

  it("draws other steps with other random numbers, and none while its weight is 0", async () => {
    const drawn = async (coefficient: number) => {
      const credits = await play(spear({ ...how, coefficient }), 0, 4)
      return credits.map(({ extraSequences }) => extraSequences!.map(({ tokens }) => tokens[1]!))
    }
    const rows = await drawn(1)
    expect(rows.flat().length).toBeGreaterThan(4)
    expect(rows.flat()).not.toEqual(rows.flat().toSorted((a, b) => a - b))
    expect(await drawn(0)).toEqual([[], [], [], []])
  })

  it("skips the tasks whose returns differ least", async () => {
    for (const steps of iterations.slice(0, 5)) {
      const width = (task: unknown) => {
        const returns = steps
          .filter((step) => step.task === task && step.turn === 0)
          .map((step) => returnOf(steps, step))
        const middle = returns.reduce((sum, one) => sum + one, 0) / returns.length
        return Math.sqrt(returns.reduce((sum, one) => sum + (one - middle) ** 2, 0) / (returns.length - 1))
      }
      const least = [0, 1, 2, 3].map(width).sort((a, b) => a - b)[1]!
      const { skip } = await creditOf(spear({ ...how, keepGroups: 0.75 }), steps)
      expect([...skip!]).toEqual(steps.map(({ task }) => (width(task) < least - 1e-9 ? 1 : 0)))
      expect(skip!.some((one) => one === 1)).toBe(true) // the first task's returns are all equal
    }
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
