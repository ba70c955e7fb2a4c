import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ClippedSurrogate, LinearLoss, NativeLoss } from "../../src/engine/engine.ts"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type Segment, type Sequence, sampledTokens } from "../../src/engine/sequence.ts"
import { policyLoss } from "../../src/kernels/policy-loss.ts"
import { Random } from "../../src/util/random.ts"
import { byRow } from "./by-row.ts"
import {
  adapterPath,
  adapters,
  architectures,
  crossEntropy,
  gradients,
  join,
  logProbsOf,
  modelPath,
  randomTokens,
  readExpected,
  relativeError,
  surrogate,
  weightNames,
} from "./fixtures.ts"

// A conversation as one row of many spans: only the computation time may differ.

/** Conversations of a group: they begin alike, part at a sampled token or at what was answered, and go on. */
async function conversations(policy: NativePolicy): Promise<Sequence[]> {
  const random = new Random(61)
  const text = (...key: (string | number)[]) => new Random(7).derive("text", ...key)
  const rows = Array.from({ length: 8 }, (_, member): Sequence => {
    const tokens: number[] = [...randomTokens(12, text("prompt", member % 2))]
    const segments: Segment[] = []
    const add = (count: number, sampled: boolean, ...key: (string | number)[]) => {
      if (sampled) segments.push({ start: tokens.length, length: count })
      tokens.push(...randomTokens(count, text(...key)))
    }
    for (let turn = 0; turn < 1 + (member % 4); turn++) {
      const whose = turn < member / 3 ? "all" : member
      add(3 + turn, true, "reply", turn, whose)
      if (turn % 2 === 0) add(4, false, "answer", turn, whose)
    }
    return { tokens: Int32Array.from(tokens), segments }
  })
  const current = await logProbsOf(policy, rows)
  return rows.map((row, index) => {
    let at = 0
    return {
      ...row,
      segments: row.segments.map((segment, turn) => {
        const own = current[index]!.subarray(at, at + segment.length)
        at += segment.length
        const perToken = Float32Array.from(own, () => random.uniform() - 0.5)
        return {
          ...segment,
          advantage: turn % 2 === 0 ? perToken : index % 3 === 0 ? 0 : random.uniform() - 0.5,
          logProbs: own.map((value) => value + 0.8 * (random.uniform() - 0.5)),
          referenceLogProbs: own.map((value) => value + random.uniform() - 0.5),
        }
      }),
    }
  })
}

/** The same steps, each a row of its own. */
function oneByOne(rows: readonly Sequence[]): Sequence[] {
  return rows.flatMap(({ tokens, segments }) =>
    segments.map((segment) => ({ tokens: tokens.slice(0, segment.start + segment.length), segments: [segment] })),
  )
}

const losses: [string, NativeLoss][] = [
  ["cross-entropy", crossEntropy],
  ["the clipped surrogate", surrogate({ klWeight: 0.1, entropyWeight: 0.02 })],
  ["that of sequences' means", surrogate({ aggregation: "sequence-mean-token-mean", temperature: 0.8 })],
  [
    "that without steps of no advantage",
    surrogate({ skipZeroAdvantage: true, aggregation: "sequence-mean-token-sum" }),
  ],
  [
    "one ratio a sequence",
    surrogate({ importanceSamplingLevel: "sequence", entropyWeight: 0.02, aggregation: "sequence-mean-token-mean" }),
  ],
]

describe.each([
  ...architectures.map((name) => [name, modelPath(name), weightNames(readExpected(name))] as const),
  ...adapters.map((name) => {
    const folder = adapterPath(name)
    return [`an adapter of ${name}`, folder, weightNames(readExpected(name, folder))] as const
  }),
])("rows of many spans with %s", (_, folder, names) => {
  let policy: NativePolicy
  let rows: Sequence[]
  beforeAll(async () => {
    const base = folder.includes("adapters") ? { base: folder.replace("adapters", "models") } : {}
    policy = await NativePolicy.open(folder, { maxPositions: 256, ...base })
    rows = await conversations(policy)
  })
  afterAll(() => policy.dispose())

  const train = async (of: readonly Sequence[], loss: NativeLoss | LinearLoss) => {
    await policy.clearGradients()
    const report = await policy.forwardBackward(of, loss)
    return { report, gradients: await gradients(policy, names) }
  }
  const expectSame = (found: Map<string, Float32Array>, wanted: Map<string, Float32Array>) => {
    for (const name of names) expect(relativeError(found.get(name)!, wanted.get(name)!), name).toBeLessThan(1e-5)
  }

  it("are scored like their steps", async () => {
    const options = { temperature: 0.7, needs: ["entropy"] } as const
    const [together, apart] = [
      byRow(rows, await policy.logProbs(rows, options)),
      byRow(oneByOne(rows), await policy.logProbs(oneByOne(rows), options)),
    ]
    expect(together.map(({ logProbs }) => logProbs.length)).toEqual(rows.map((row) => sampledTokens([row])))
    for (const name of ["logProbs", "entropies"] as const) {
      const [found, wanted] = [join(together.map((one) => one[name]!)), join(apart.map((one) => one[name]!))]
      expect(relativeError(found, wanted)).toBeLessThan(2e-6)
    }
  })

  it.each(losses)("have the loss, the report and the gradient of their steps: %s", async (_, loss) => {
    const [found, wanted] = [await train(rows, loss), await train(oneByOne(rows), loss)]
    expect(found.report.tokens).toBe(wanted.report.tokens)
    expect(found.report.loss).toBeCloseTo(wanted.report.loss, 6)
    for (const [name, value] of Object.entries(wanted.report.metrics))
      expect(found.report.metrics[name], name).toBeCloseTo(value, 5)
    expectSame(found.gradients, wanted.gradients)
  })

  it("have the gradient of their steps by any other loss", async () => {
    const random = new Random(3)
    const column = () => Float32Array.from({ length: sampledTokens(rows) }, () => random.uniform() - 0.5)
    const loss: LinearLoss = { kind: "linear", coefficients: column(), entropyCoefficients: column(), temperature: 0.9 }
    const [found, wanted] = [await train(rows, loss), await train(oneByOne(rows), loss)]
    expectSame(found.gradients, wanted.gradients)
  })

  it("can be mixed with rows of one span, in any order", async () => {
    const mixed = new Random(8).shuffled([...rows, ...oneByOne(rows.slice(0, 4))])
    const loss = surrogate({ klWeight: 0.1 })
    const [found, wanted] = [await train(mixed, loss), await train(oneByOne(mixed), loss)]
    expectSame(found.gradients, wanted.gradients)
    const scores = await logProbsOf(policy, mixed)
    const [some] = await logProbsOf(policy, [mixed[5]!])
    expect(relativeError(scores[5]!, some!)).toBeLessThan(2e-6)
  })
})

describe("a row as one sequence", () => {
  let policy: NativePolicy
  let rows: Sequence[]
  const names = weightNames(readExpected("qwen3"))
  beforeAll(async () => {
    policy = await NativePolicy.open(modelPath("qwen3"), { maxPositions: 256 })
    rows = await conversations(policy)
  })
  afterAll(() => policy.dispose())

  it.each<Partial<ClippedSurrogate>>([
    { aggregation: "sequence-mean-token-mean" },
    { aggregation: "sequence-mean-token-sum" },
    { importanceSamplingLevel: "sequence", aggregation: "sequence-mean-token-mean", klWeight: 0.1 },
    { importanceSamplingLevel: "sequence" },
  ])("is what ratios, means and counts are over: %j", async (options) => {
    const logProbs = join(await logProbsOf(policy, rows))
    const segments = rows.flatMap((row) => row.segments)
    const { gradient, loss } = policyLoss(
      {
        logProbs,
        oldLogProbs: join(segments.map((segment) => segment.logProbs!)),
        referenceLogProbs: join(segments.map((segment) => segment.referenceLogProbs!)),
        advantages: join(
          segments.map(({ advantage, length }) =>
            typeof advantage === "number" ? new Float32Array(length).fill(advantage) : advantage!,
          ),
        ),
        mask: new Float32Array(logProbs.length).fill(1),
        lengths: Int32Array.from(rows, (row) => sampledTokens([row])),
      },
      options,
    )
    await policy.clearGradients()
    const report = await policy.forwardBackward(rows, surrogate({ ...options, unit: "conversation" }))
    const found = await gradients(policy, names)
    expect(report.loss).toBeCloseTo(loss, 5)
    await policy.clearGradients()
    await policy.forwardBackward(rows, { kind: "linear", coefficients: gradient })
    for (const [name, wanted] of await gradients(policy, names))
      expect(relativeError(found.get(name)!, wanted), name).toBeLessThan(1e-5)
    const bySegment = await policy.forwardBackward(rows, surrogate(options))
    expect(Math.abs(bySegment.loss - report.loss)).toBeGreaterThan(1e-4)
  })

  it("equals one span if every row has one", async () => {
    const steps = oneByOne(rows)
    for (const importanceSamplingLevel of ["token", "sequence"] as const) {
      const options = { importanceSamplingLevel, aggregation: "sequence-mean-token-mean" } as const
      const reports = []
      for (const unit of ["completion", "conversation"] as const)
        reports.push(await policy.forwardBackward(steps, surrogate({ ...options, unit })))
      expect(reports[1]).toEqual(reports[0])
    }
  })
})

describe("arguments of a call", () => {
  it("must not change until it is settled: a change is rejected or read, and the engine continues", async () => {
    const policy = await NativePolicy.open(modelPath("qwen3"), { maxPositions: 256 })
    const rows = await conversations(policy)
    const coefficients = new Float32Array(sampledTokens(rows)).fill(0.1)
    const loss = surrogate({ klWeight: 0.1 })
    const spoil = (given: typeof rows) => {
      for (const { tokens, segments } of given) {
        for (const { logProbs, advantage, referenceLogProbs } of segments) {
          for (const column of [logProbs!, referenceLogProbs!]) column.fill(1e9)
          if (typeof advantage === "object") structuredClone(advantage, { transfer: [advantage.buffer as ArrayBuffer] })
        }
        tokens.fill(-1)
      }
    }
    const run = async (when: "before" | "after") => {
      await policy.clearGradients()
      const given = structuredClone(rows)
      const linear = coefficients.slice()
      const calls = [
        policy.logProbs(given),
        policy.forwardBackward(given, loss),
        policy.forwardBackward(given, { kind: "linear", coefficients: linear, entropyCoefficients: linear }),
      ]
      if (when === "before") spoil(given)
      const settled = await Promise.allSettled(calls)
      if (when === "after") spoil(given)
      linear.fill(NaN)
      return [...settled, await policy.tensor("model.norm.weight", "gradients")]
    }
    const wanted = await run("after")
    for (const one of (await run("before")).slice(0, 3) as PromiseSettledResult<unknown>[])
      if (one.status === "rejected")
        expect(one.reason).toMatchObject({ code: expect.stringMatching(/^(BAD_ARGUMENT|NON_FINITE)$/) })
    expect(await run("after")).toEqual(wanted)
    await policy.dispose()
  })
})
