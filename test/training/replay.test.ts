import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import type { Batch, Credit } from "../../src/credit/estimator.ts"
import { imitationWeight, spear } from "../../src/credit/spear.ts"
import { shares } from "../../src/engine/shares.ts"
import { clipCov } from "../../src/loss/clip-cov.ts"
import { lossFields } from "../../src/loss/options.ts"
import type { LossInput, TokenLoss } from "../../src/loss/token-loss.ts"
import { readOptions } from "../../src/options/read.ts"
import { replayOf } from "../../src/training/replay.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { expectClose } from "../credit/close.ts"
import { characters, TablePolicy } from "./table-policy.ts"
import { openDoors } from "./tiny.ts"

type Names = "oldLogProbs" | "logProbs" | "advantages" | "entropies"

/** Numbers of the authors' loss of SPEAR (test/fixtures/README.md). */
const reference = JSON.parse(readFileSync(new URL("../fixtures/spear.json", import.meta.url), "utf8")) as {
  readonly batch: Readonly<Record<Names | "lengths", readonly number[]>>
  readonly losses: readonly {
    readonly aggregation: "token-mean" | "sequence-mean-token-sum"
    readonly iteration: number
    readonly loss: number
    readonly dropped: number
    readonly gradient: readonly number[]
    readonly entropyGradient: readonly number[]
  }[]
}

const { lengths, ...columns } = reference.batch
const offsets = Int32Array.from([0, ...lengths.map((_, s) => lengths.slice(0, s + 1).reduce((sum, n) => sum + n, 0))])
const unknown = new Int32Array(lengths.length).fill(-1)

const input = (iteration: number): LossInput => ({
  tokens: columns.logProbs.length,
  ...{ offsets, segmentOffsets: offsets, sequenceOffsets: offsets },
  ...{ logProbs: Float64Array.from(columns.logProbs), oldLogProbs: Float64Array.from(columns.oldLogProbs) },
  ...{ advantages: Float64Array.from(columns.advantages), entropies: Float64Array.from(columns.entropies) },
  shares: shares("token-mean", offsets),
  ...{ steps: unknown, episodes: unknown, tasks: unknown },
  progress: { iteration, iterations: 500 },
  random: new Random(0),
})

/** Settings under which the authors' code drops all candidates, so that its random numbers have no effect. */
const replayLoss = { clipLow: 0.2, clipHigh: 0.28, covarianceShare: 0.9, covarianceLow: 0.15, covarianceHigh: 1.6 }

const wholeLoss = (iteration: number, around: object): TokenLoss => {
  const weight = imitationWeight(iteration + 1, { coefficient: 1, warmup: 200 })
  const options = { name: "clipped-surrogate", ...readOptions("loss", around, lossFields) }
  return replayOf({ sequences: [], loss: clipCov(replayLoss), weight }, options as never).loss
}

describe("the loss of replayed steps", () => {
  it.each(reference.losses)(
    "equals the authors' loss and gradients: $aggregation, iteration $iteration",
    (expected) => {
      const { aggregation, iteration } = expected
      // A KL penalty of the training does not apply: there are no log-probabilities of a reference.
      const whole = wholeLoss(iteration, { aggregation, entropyWeight: 0.01, klWeight: 0.5 })
      const { loss, gradient, entropyGradient, metrics } = whole.evaluate(input(iteration))
      expect(loss).toBeCloseTo(expected.loss, 9)
      expect(metrics!["policy/cov-clipped-fraction"]).toBeCloseTo(expected.dropped, 8)
      expectClose(gradient, expected.gradient, 1e-6)
      expectClose(entropyGradient!, expected.entropyGradient, 1e-6)
    },
  )

  it("has the gradient of its value, by finite differences", () => {
    const whole = wholeLoss(49, { aggregation: "sequence-mean-token-sum" })
    const at = (token: number, shift: number) => {
      const { logProbs, ...rest } = input(49)
      const moved = Float64Array.from(logProbs, (value, t) => (t === token ? value + shift : value))
      return whole.evaluate({ ...rest, logProbs: moved }).loss
    }
    const { gradient } = whole.evaluate(input(49))
    const found = columns.logProbs.map((_, token) => (at(token, 1e-6) - at(token, -1e-6)) / 2e-6)
    expectClose(found, gradient, 1e-5)
    expect(found.filter((one) => Math.abs(one) > 1e-4).length).toBeGreaterThan(5)
  })
})

/** A loss that records the batches it is given. */
const recording = (name: string, seen: string[]): TokenLoss => ({
  name,
  evaluate: ({ tokens, advantages, episodes }) => {
    seen.push(`${name} ${new Set(episodes).has(-1) ? "replayed" : "own"} ${tokens} ${advantages[0]}`)
    return { loss: 0, gradient: new Float32Array(tokens) }
  },
})

const setup = (policy = new TablePolicy()) => ({
  policy,
  tokenizer: characters,
  environment: openDoors(),
  ...{ iterations: 1, groups: 2, groupSize: 2, seed: 4 },
  optimizer: { learningRate: 2, warmup: 0 },
  rollout: { maxCompletionTokens: 1 },
})

/** An estimator whose iterations replay three sequences of one token. */
const replaying = (replay: object) => ({
  name: "mine",
  estimate: ({ length }: Batch): Credit => ({
    advantages: new Float64Array(length).fill(1),
    replay: {
      sequences: [5, 6, 7].map((advantage) => ({
        tokens: Int32Array.of(1, 2),
        segments: [{ start: 1, length: 1, logProbs: Float32Array.of(-1), advantage, task: 0, episode: 0 }],
      })),
      weight: 1,
      ...replay,
    } as never,
  }),
})

describe("replayed sequences", () => {
  it("follow the other steps in each epoch, in updates of their own with a loss of their own", async () => {
    const seen: string[] = []
    const [main, other] = [recording("main", seen), recording("other", seen)]
    const estimator = replaying({ loss: other })
    const options = { estimator, loss: { use: main, klWeight: 0.1 }, stepsPerUpdate: 2, epochs: 2 }
    const [report] = await train({ ...setup(), ...options })
    const kinds = seen.map((one) => one.split(" ").slice(0, 2).join(" "))
    const own = (kinds.length - 4) / 2
    expect(own).toBeGreaterThan(1)
    const epoch = [...Array(own).fill("main own"), "other replayed", "other replayed"]
    expect(kinds).toEqual([...epoch, ...epoch])
    expect(report!.metrics).toMatchObject({ "optimizer/steps": kinds.length, "replay/loss": 0, "loss/policy": 0 })
  })

  it.each([
    ["sequences", { sequences: undefined, loss: clipCov() }, /a replay that is not \{ sequences, loss, weight \}/],
    ["a loss", { loss: { name: "nothing" } }, /loss nothing has no function evaluate/],
    ["a weight", { loss: clipCov(), weight: -1 }, /a replay with the weight -1; give a number of at least 0/],
    ["tokens", { loss: clipCov(), sequences: [{}] }, /replay\.sequences\[0\] that is not a sequence/],
  ])("are rejected without %s", async (_, replay, message) => {
    await expect(train({ ...setup(), estimator: replaying(replay) })).rejects.toThrow(message)
  })

  it("of SPEAR change the policy, unless their weight is 0", async () => {
    const logits = async (coefficient: number) => {
      const policy = new TablePolicy()
      const estimator = spear({ estimator: { name: "grpo" }, capacity: 2, warmup: 0, coefficient })
      const reports = await train({ ...setup(policy), estimator, groups: 4, groupSize: 4, iterations: 4 })
      expect(reports.some(({ metrics }) => (metrics["replay/sequences"] ?? 0) > 0)).toBe(coefficient > 0)
      return Array.from(policy.logits)
    }
    const [none, some] = [await logits(0), await logits(1)]
    expect(some).not.toEqual(none)
  })
})
