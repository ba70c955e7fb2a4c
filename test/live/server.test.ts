import { mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { RemoteEngine } from "../../src/engine/remote/remote-engine.ts"
import { type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import { byRow } from "../engine/by-row.ts"

// Against a real server of the Tinker API, by hand: npm run test:live with TINKER_BASE_URL, and GIGPO_LIVE_MODEL, the folder of the model
// that it serves.

const { TINKER_BASE_URL: url, GIGPO_LIVE_MODEL: directory, TINKER_API_KEY: key = "tml-live" } = process.env
const there = url !== undefined && directory !== undefined
const why = there ? "" : " (skipped: set TINKER_BASE_URL and GIGPO_LIVE_MODEL)"

describe.skipIf(!there)(`a real server${why}`, () => {
  let engine: RemoteEngine
  beforeAll(async () => {
    engine = await RemoteEngine.open(directory!, { url: url!, key, rank: 8, requestTimeout: 60, resultTimeout: 300 })
  })
  afterAll(async () => await engine?.dispose())

  const row = (seed: number, length: number): Sequence => {
    const tokens = Int32Array.from({ length }, (_, i) => (i * seed + 7) % Math.min(engine.vocabularySize, 200))
    return { tokens, segments: [{ start: 5, length: length - 5 }] }
  }

  it("passes the probes", async () => {
    const refused = await engine.check({
      ...({
        loss: "linear",
        entropyCoefficients: false,
        statistics: [],
        severalSegments: true,
        checkpoints: true,
      } as const),
      ...{ models: ["reference"], optimizer: { learningRate: 1e-3, maxGradientNorm: Number.POSITIVE_INFINITY } },
    })
    console.log(JSON.stringify(await engine.probes(), null, 1))
    expect(refused).toEqual([])
  })

  it("says of tokens what this machine's engine says, to 1e-3", async () => {
    const rows = [row(13, 40), row(5, 25)]
    await using native = await NativePolicy.open(directory!, { device: "cpu" })
    const here = byRow(rows, await native.logProbs(rows))
    for (const model of ["current", "reference"])
      for (const [r, { logProbs }] of byRow(rows, await engine.logProbs(rows, { model })).entries())
        for (const [i, value] of logProbs.entries()) expect(value).toBeCloseTo(here[r]!.logProbs[i]!, 3)
  })

  it("learns what it is rewarded for, and comes back from what it saved", async () => {
    const prompt = Int32Array.of(5, 6, 7)
    const said = stepSequence(prompt, Int32Array.of(20, 21, 22))
    const likely = async () =>
      byRow([said], await engine.logProbs([said]))[0]!.logProbs.reduce((sum, value) => sum + value, 0)
    const before = await likely()
    for (let step = 0; step < 10; step++) {
      await engine.forwardBackward([said], { kind: "cross-entropy" })
      await engine.optimizerStep({ learningRate: 1e-2, maxGradientNorm: Number.POSITIVE_INFINITY })
    }
    const learned = await likely()
    expect(learned).toBeGreaterThan(before + 3)
    const sampled = await engine.sample({ prompt, maxTokens: 3, temperature: 0, stopTokens: [], key: [1, 2] })
    expect(sampled.tokens).toEqual(Int32Array.of(20, 21, 22))
    const handle = await engine.store.checkpoint(await mkdtemp(join(tmpdir(), "gigpo-live-")))
    await engine.forwardBackward([said], { kind: "cross-entropy" })
    await engine.optimizerStep({ learningRate: 1e-1, maxGradientNorm: Number.POSITIVE_INFINITY })
    expect(Math.abs((await likely()) - learned)).toBeGreaterThan(1e-3)
    await engine.store.restore(handle, "")
    expect(await likely()).toBeCloseTo(learned, 3)
  })

  it("is reinforced: what pays is said more often", async () => {
    const prompt = Int32Array.of(9, 8, 7)
    const pays = (token: number) => (token % 2 === 0 ? 1 : 0)
    const share: number[] = []
    for (let iteration = 0; iteration < 14; iteration++) {
      const drawn = await Promise.all(
        Array.from({ length: 24 }, (_, i) =>
          engine.sample({ prompt, maxTokens: 3, stopTokens: [], key: [iteration + 1, i] }),
        ),
      )
      const rewards = drawn.map(({ tokens }) => tokens.reduce((sum, token) => sum + pays(token), 0) / tokens.length)
      expect(new Set(drawn.map(({ tokens }) => tokens.join())).size).toBeGreaterThan(1)
      const mean = rewards.reduce((a, b) => a + b, 0) / rewards.length
      share.push(mean)
      const rows = drawn.map(({ tokens, logProbs }, i) =>
        stepSequence(prompt, tokens, { logProbs, advantage: rewards[i]! - mean }),
      )
      await engine.forwardBackward(rows, {
        ...({
          kind: "clipped-surrogate",
          importanceSamplingLevel: "token",
          aggregation: "token-mean",
          klEstimator: "k3",
        } as const),
        ...{ clipLow: 0.2, clipHigh: 0.2, clipDual: Number.POSITIVE_INFINITY, klWeight: 0, entropyWeight: 0 },
        skipZeroAdvantage: false,
      })
      await engine.optimizerStep({ learningRate: 5e-3, maxGradientNorm: Number.POSITIVE_INFINITY })
    }
    console.log("paid:", share.map((value) => value.toFixed(2)).join(" "))
    const late = share.slice(-3).reduce((a, b) => a + b, 0) / 3
    expect(late).toBeGreaterThan(share[0]! + 0.2)
  })
})
