import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import type { Estimator } from "../../src/credit/estimator.ts"
import { estimators } from "../../src/credit/estimators.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { only } from "../../src/options/fixed.ts"
import type { Named } from "../../src/options/named.ts"
import { readOptions } from "../../src/options/read.ts"
import type { OptionFields } from "../../src/options/table.ts"
import { Run } from "../../src/runs/run.ts"
import { train } from "../../src/training/train.ts"
import { characters, TablePolicy } from "../training/table-policy.ts"
import { openDoors, timeless } from "../training/tiny.ts"
import { creditOf } from "./worlds.ts"

// Every estimator by its name, in the loop, on rooms with doors; step signals are metrics of the environment.

const told = (environment: Environment): Environment => ({
  ...environment,
  async start(task, context) {
    const episode = await environment.start(task, context)
    let turn = 0
    return {
      first: episode.first,
      async step(action) {
        const result = await episode.step(action)
        const metrics = {
          gain: result.reward - 0.5,
          belief: 0.1 * turn,
          value: 1 / ++turn,
          strategy: action.length % 2,
          kind: 1,
        }
        return { ...result, metrics: { ...result.metrics, ...metrics } }
      },
    }
  },
})

/** What some must be told. */
const options: Readonly<Record<string, object>> = {
  "vine-ppo": { value: "value" },
  rlvmr: { reward: "gain", tag: "strategy" },
  rebel: { beliefRewards: ["belief"], beliefWeights: [1], kind: "kind" },
  a2tgpo: { gain: "gain" },
  igpo: { gain: "gain" },
  mica: { progress: "gain" },
  "ema-grpo": { kind: "kind" },
  strata: { strategy: "strategy" },
  gdpo: { channels: ["reward", "gain"] },
  empg: { estimator: { name: "hgpo", history: 1 } },
  aepo: { estimator: { name: "grpo" } },
  spear: { estimator: { name: "ema-grpo", decay: 0.5 }, warmup: 0, minAdvantage: 0.1, capacity: 6 },
}

/** Every reply opens a door, by its first character. */
const parse: Environment["parse"] = (completion) => {
  const first = completion.codePointAt(0) ?? 0
  return { action: "abc"[first % 3]!, valid: first % 2 === 0 }
}

const setup = (name: string, policy = new TablePolicy()) => ({
  policy,
  tokenizer: characters,
  environment: told(openDoors({ parse })),
  iterations: 4,
  groups: 4,
  groupSize: 4,
  stepsPerUpdate: 16,
  estimator: { name, ...options[name] } as never,
  critic: { stepsPerUpdate: 16 },
  optimizer: { learningRate: 2, warmup: 0 },
  loss: { klWeight: 0 },
  rollout: { maxCompletionTokens: 2 },
})

describe.each(Object.keys(estimators))("%s", (name) => {
  it("trains when selected by name", async () => {
    const { policy, ...rest } = setup(name)
    const reports = await train({ ...rest, policy })
    expect(reports.length).toBe(4)
    for (const { metrics } of reports)
      for (const value of Object.values(metrics)) expect(value === undefined || Number.isFinite(value)).toBe(true)
    expect(policy.logits.some((logit) => logit !== 0)).toBe(true)
  })
})

/** Three steps whatever is done, and a reward for the last. */
const alike = (environment: Environment): Environment => ({
  ...environment,
  async start(task, context) {
    const { first } = await environment.start(task, context)
    let turn = 0
    const step = async () => {
      const terminated = ++turn === 3
      const metrics = { gain: 0.5, belief: 0.1, strategy: 1, kind: turn }
      const observation = { text: `turn ${turn}`, anchor: `turn ${turn}` }
      return { observation, reward: terminated ? 1 : 0, terminated, truncated: false, metrics }
    }
    return { first, step }
  },
})

// Those that compare with what a critic or a value predicts may still be surprised; EMPG pays for the clarity of the next step besides, G2PO
// for late steps, AsymRE for every episode, RAE for what was not expected before, the optimal token baseline for what only
// the longest episode has.
const paidBeside = new Set([
  "ppo",
  "step-ppo",
  "turn-ppo",
  "vine-ppo",
  "empg",
  "g2po",
  "asym-re",
  "rae",
  "optimal-token-baseline",
])
it.each(Object.keys(estimators).filter((name) => !paidBeside.has(name)))(
  "%s gives exactly 0 where all rewards are equal",
  async (name) => {
    const { policy, environment, ...rest } = setup(name)
    const parse: Environment["parse"] = () => ({ action: "a", valid: true })
    const reports = await train({ ...rest, policy, environment: alike({ ...environment, parse }), iterations: 2 })
    expect(reports.every(({ metrics }) => metrics["episode/return"] === 1)).toBe(true)
    expect(policy.logits.every((logit) => logit === 0)).toBe(true)
  },
)

it.each(Object.keys(estimators).filter((name) => name !== "remax"))("%s gives no steps nothing", async (name) => {
  const { fields, make }: Named<OptionFields, Estimator> = estimators[name as keyof typeof estimators]
  const estimator = make(only(readOptions(name, options[name] ?? {}, fields), fields) as never)
  const { advantages } = await creditOf(estimator, [], { value: [], entropy: [], old: [], squares: [] })
  expect(advantages).toHaveLength(0)
})

describe.each(["ema-grpo", "rae", "spear"])("%s", (name) => {
  it("continues from a checkpoint as without interruption", async () => {
    const whole = await train(setup(name))
    const replays = whole.slice(2).map(({ metrics }) => metrics["replay/sequences"] ?? 0)
    expect(replays.some((count) => count > 0)).toBe(name === "spear") // steps of the buffer in the checkpoint
    const folder = await mkdtemp(join(tmpdir(), "gigpo-credit-"))
    try {
      for (const part of [1, 2]) {
        await using run = await Run.open(join(folder, "run"), {}, { resume: part === 2 })
        const reports = []
        for await (const report of train({ ...setup(name), run })) {
          reports.push(report)
          if (part === 1 && report.iteration === 2) break
        }
        expect(reports.map(timeless)).toEqual((part === 1 ? whole.slice(0, 2) : whole.slice(2)).map(timeless))
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})
