import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import type { Course, CourseSegment } from "../../src/data/course.ts"
import type { Example, TrainingData } from "../../src/data/data.ts"
import type { LinearLoss, NativeLoss } from "../../src/engine/engine.ts"
import type { Sequence } from "../../src/engine/sequence.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { Run } from "../../src/runs/run.ts"
import { completionWorth, expectileTarget, implicitQWeight } from "../../src/sft/implicit-q.ts"
import { type SftSetup, sft } from "../../src/sft/sft.ts"
import { Random } from "../../src/util/random.ts"
import { recordedEpisodes } from "../../src/view/record/as-data.ts"
import { expectClose } from "../credit/close.ts"
import { byRow } from "../engine/by-row.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { episode } from "../training/episodes.ts"
import { characters, TablePolicy } from "../training/table-policy.ts"
import { all, TinyModel } from "../training/tiny.ts"
import { group, record, said } from "../view/record/groups.ts"

// A chain of three places. "f" goes forward, from the last of them to the end with a reward of 1; "b" ends the episode with nothing.

const tiny = new TinyModel(doorsEnvironment() as Environment)
const places = 3
const tokens = (text: string) => characters.encode(text)
const prompt = (place: number) => `..${place}`

interface Played {
  readonly place: number
  readonly completion: string
  readonly reward: number
}

/** Episodes of a player that moves forward in only a third of all steps. */
function badly(count: number): Played[][] {
  const random = new Random(3)
  return Array.from({ length: count }, () => {
    const steps: Played[] = []
    for (let place = random.below(places); place < places; place++) {
      const completion = random.below(3) === 0 ? "f" : "b"
      const reward = completion === "f" && place === places - 1 ? 1 : 0
      steps.push({ place, completion, reward })
      if (completion === "b") break
    }
    return steps
  })
}

const rowOf = ({ place, completion }: Played, course?: Course): Sequence => {
  const asked = tokens(prompt(place))
  const segment: CourseSegment = { start: asked.length, length: completion.length, ...(course && { course }) }
  return { tokens: Int32Array.of(...asked, ...tokens(completion)), segments: [segment] }
}

/** A source that tells what followed, or does not. */
const told = (episodes: readonly (readonly Played[])[], tells = true): TrainingData => ({
  name: "chain",
  async *examples() {
    for (const [at, steps] of episodes.entries()) {
      const rewards = Float64Array.from(steps, ({ reward }) => reward)
      const sequences = steps.map((step, at) => rowOf(step, tells ? { rewards, at } : undefined))
      yield { place: `episode ${at}`, sequences } satisfies Example
    }
  },
})

class WatchedPolicy extends TablePolicy {
  readonly rows: Sequence[] = []
  override async forwardBackward(rows: readonly Sequence[], loss: NativeLoss | LinearLoss) {
    this.rows.push(...rows)
    return await super.forwardBackward(rows, loss)
  }
}

const flat = { warmup: 0, schedule: "constant" } as const
const implicitQ = { expectile: 0.9, gamma: 0.9, temperature: 0.1, maxWeight: 20, epochs: 60, stepsPerUpdate: 1000 }
const critic = { ...flat, learningRate: 0.5 }

async function cloned(episodes: readonly (readonly Played[])[], given: Partial<SftSetup>) {
  const policy = new WatchedPolicy()
  const setup = { policy, tokenizer: characters, data: told(episodes), epochs: 1, completionsPerUpdate: 1000, ...given }
  await all(sft({ ...setup, optimizer: { ...flat, learningRate: 3, maxGradientNorm: Infinity } } as SftSetup))
  return policy
}

/** How likely the policy goes forward rather than back. */
async function forward(policy: TablePolicy, place: number): Promise<number> {
  const rows = ["f", "b"].map((completion) => rowOf({ place, completion, reward: 0 }))
  const [f, b] = byRow(rows, await policy.logProbs(rows)).map(({ logProbs }) => Math.exp(logProbs[0]!))
  return f! / (f! + b!)
}

/** Values by place, and the weights of all replies: a loop of its own. */
function weightsOf(episodes: readonly (readonly Played[])[], target: "one-step" | "return") {
  const { expectile, gamma, temperature, maxWeight, epochs } = implicitQ
  const values = [0, 0, 0]
  const count = episodes.flat().length
  const worthOf = (steps: readonly Played[], at: number, of: readonly number[]) => {
    if (target === "one-step")
      return steps[at]!.reward + (at + 1 < steps.length ? gamma * of[steps[at + 1]!.place]! : 0)
    let sum = 0
    for (let later = at; later < steps.length; later++) sum += gamma ** (later - at) * steps[later]!.reward
    return sum
  }
  for (let epoch = 0; epoch < epochs; epoch++) {
    const slopes = [0, 0, 0]
    for (const steps of episodes)
      for (const [at, { place }] of steps.entries()) {
        const u = worthOf(steps, at, values) - values[place]!
        slopes[place]! -= (2 * (u < 0 ? 1 - expectile : expectile) * u) / count
      }
    for (const place of values.keys()) values[place]! -= critic.learningRate * slopes[place]!
  }
  const weights = episodes.flatMap((steps) =>
    steps.map(({ place }, at) =>
      Math.min(Math.exp((worthOf(steps, at, values) - values[place]!) / temperature), maxWeight),
    ),
  )
  return { values, weights }
}

it("has the gradient of the expectile loss, by finite differences", () => {
  const loss = (worth: number, value: number, expectile: number) =>
    Math.abs(expectile - (worth < value ? 1 : 0)) * (worth - value) ** 2
  const h = 1e-6
  for (const [worth, value] of [
    [1, 0.2],
    [-0.5, 0.3],
    [2, 2.5],
  ] as const)
    for (const expectile of [0.5, 0.7, 0.95]) {
      const slope = (loss(worth, value + h, expectile) - loss(worth, value - h, expectile)) / (2 * h)
      expect(value - expectileTarget(worth, value, expectile)).toBeCloseTo(slope, 8)
    }
  // At one half it is the squared error, and the target what the reply is worth.
  expect(expectileTarget(1, 0.2, 0.5)).toBe(1)
  expect([
    implicitQWeight(2, 1, { temperature: 0.5, maxWeight: 20 }),
    implicitQWeight(9, 1, { temperature: 1, maxWeight: 20 }),
  ]).toEqual([Math.exp(2), 20])
})

it("gives completions the rewards until the next one of their conversation, plus its value", () => {
  const [one, other] = [Float64Array.of(1, 2, 4), Float64Array.of(8, 16)]
  const courses = [
    { rewards: one, at: 0 },
    { rewards: one, at: 2 }, // the step between is not learned
    { rewards: other, at: 0 },
  ]
  expectClose(completionWorth(courses, 0.5, [100, 10, 1000]), [1 + 1 + 0.25 * 10, 4, 8 + 8])
  expectClose(completionWorth(courses, 0.5), [1 + 1 + 1, 4, 16])
})

it.each(["one-step", "return"] as const)(
  "weighs completions as the definition says, worth their %s",
  async (target) => {
    const episodes = badly(40)
    const policy = await cloned(episodes, { implicitQ: { ...implicitQ, target, optimizer: critic } })
    const { weights, values } = weightsOf(episodes, target)
    // Batches come in another order than the data.
    const found = policy.rows.map((row) => [`${row.tokens}`, row.segments[0]!.weights![0]!] as const)
    const expected = episodes.flat().map((step, at) => [`${rowOf(step).tokens}`, weights[at]!] as const)
    const sorted = (list: (readonly [string, number])[]) => list.sort((a, b) => a[0].localeCompare(b[0]) || a[1] - b[1])
    expect(sorted(found).map(([key]) => key)).toEqual(sorted([...expected]).map(([key]) => key))
    for (const [at, [, weight]] of sorted([...expected]).entries()) expect(found[at]![1] / weight).toBeCloseTo(1, 3)
    expect(new Set(weights.map((weight) => weight.toFixed(3))).size).toBeGreaterThan(3)
    expect(values[2]).toBeGreaterThan(values[0]!)
  },
)

it("prefers the better actions of data on which plain SFT fails", async () => {
  const episodes = badly(200)
  const plain = await cloned(episodes, { epochs: 60 })
  const weighed = await cloned(episodes, { epochs: 60, implicitQ: { ...implicitQ, epochs: 200, optimizer: critic } })
  for (let place = 0; place < places; place++) {
    expect(await forward(plain, place)).toBeLessThan(0.45)
    expect(await forward(weighed, place)).toBeGreaterThan(0.8)
  }
})

it("fits values with the critic of the native engine", async () => {
  const { policy } = await tiny.open()
  const episodes = badly(20)
  const options = { ...implicitQ, epochs: 60, stepsPerUpdate: 8, optimizer: { ...flat, learningRate: 3e-3 } }
  const setup = { policy, tokenizer: characters, data: told(episodes), epochs: 1, implicitQ: options }
  const [report] = await all(sft({ ...setup, optimizer: { learningRate: 1e-3 } } as SftSetup))
  expect(report).toMatchObject({ completions: episodes.flat().length, loss: expect.any(Number) })
  const states = [0, 1, 2].map((place) => rowOf({ place, completion: "f", reward: 0 }))
  const found = [...(await (await policy.critic()).predict(states))]
  // Where the expectile loss is least: τ Σ_f (Q - V) = (1 - τ) Σ_b V, of f replies forward and b back, from the last place on.
  const { expectile, gamma } = implicitQ
  const least: number[] = []
  for (let place = places - 1, worth = 1; place >= 0; place--) {
    const completions = episodes.flat().filter((step) => step.place === place)
    const good = expectile * completions.filter(({ completion }) => completion === "f").length
    const bad = (1 - expectile) * completions.filter(({ completion }) => completion === "b").length
    least[place] = (good * worth) / (good + bad)
    worth = gamma * least[place]!
  }
  for (const [place, value] of least.entries()) expect(Math.abs(found[place]! - value)).toBeLessThan(0.03)
  expect(Math.max(...least) - Math.min(...least)).toBeGreaterThan(0.1)
})

it("is resumed with bit-identical results", async () => {
  const data = told(badly(20))
  const options = { ...implicitQ, epochs: 8, stepsPerUpdate: 8, optimizer: { ...flat, learningRate: 3e-3 } }
  const played = async (given: object) => {
    const { policy, tokenizer } = await tiny.open()
    const setup = { policy, tokenizer, data, epochs: 4, completionsPerUpdate: 8, implicitQ: options, ...given }
    return { policy, setup: { ...setup, optimizer: { learningRate: 3e-3 } } as SftSetup }
  }
  const whole = await played({})
  const reports = await all(sft(whole.setup))
  const directory = join(tiny.folder, "stopped")
  {
    const stop = new AbortController()
    await using run = await Run.open(directory, {})
    const { setup } = await played({ run, signal: stop.signal })
    let epochs = 0
    await expect(
      (async () => {
        for await (const _ of sft(setup)) if (++epochs === 2) stop.abort(new Error("enough"))
      })(),
    ).rejects.toThrow("enough")
  }
  await using run = await Run.open(directory, {}, { resume: true })
  const rest = await played({ run })
  const resumed = await all(sft(rest.setup))
  const losses = (list: readonly { readonly loss: number }[]) => list.map(({ loss }) => loss)
  expect(resumed.length).toBeGreaterThan(0)
  expect(losses(resumed)).toEqual(losses(reports).slice(-resumed.length))
  expect(await tiny.weights(rest.policy)).toBe(await tiny.weights(whole.policy))
})

it("learns from recorded episodes, including unsuccessful ones", async () => {
  const run = await mkdtemp(join(tmpdir(), "gigpo-iql-"))
  onTestFinished(() => rm(run, { recursive: true }))
  const steps = [
    said("a", "one", "x", { reward: 0.5 }),
    said("a", "one", "y", { reward: 1, valid: false }),
    said("b", "two", "z", { reward: 2 }),
  ]
  const lost = episode([said("a", "one", "y", { reward: -1 })], { metrics: { success: 0 } })
  const groups = [group(0, [episode(steps, { metrics: { success: 1 } }), lost])]
  expect(await record(run, [[1, { groups, credit: { advantages: new Float64Array(4) } }]])).toEqual([])
  const context = { tokenizer: characters, completions: "all", successfulOnly: false, onWarning: () => {} } as const
  const examples: Example[] = await all(recordedEpisodes(run).examples(context))
  const courses = examples.map(({ sequences }) =>
    sequences.flatMap(({ segments }) => segments.map((segment: CourseSegment) => segment.course)),
  )
  const rewards = Float64Array.of(0.5, 1, 2)
  expect(courses).toEqual([
    [
      { rewards, at: 0 },
      { rewards, at: 2 },
    ],
    [{ rewards: Float64Array.of(-1), at: 0 }],
  ])
  expect(courses[0]![0]!.rewards).toBe(courses[0]![1]!.rewards)
})

it("rejects invalid data before anything is learned", async () => {
  const policy = new TablePolicy()
  const setup = { policy, tokenizer: characters, implicitQ: {}, onWarning: () => {} }
  const refused = (given: object, message: RegExp) =>
    expect(all(sft({ ...setup, ...given } as SftSetup))).rejects.toThrow(message)
  await refused({ data: told(badly(2), false) }, /implicitQ needs the rewards of completions/)
  await refused({ data: told(badly(2)), loss: { name: "dpo" } }, /which preference pairs do not have/)
  await refused({}, /implicitQ needs completions with rewards: give data/)
  const without = Object.defineProperty(new TablePolicy(), "critic", { value: undefined })
  await refused({ policy: without, data: told(badly(2)) }, /implicitQ needs a critic/)
  await refused({ implicitQ: { expectile: 1 } }, /expectile must be/)
  expect(policy.steps).toBe(0)
})
