import { existsSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import type { Aggregation } from "../../src/engine/engine.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { composeLoss } from "../../src/loss/compose-loss.ts"
import { type HolderOptions, holderPo } from "../../src/loss/holder-po.ts"
import { type HolderScheduleName, holderSchedule } from "../../src/loss/holder-schedule.ts"
import { lossInput } from "../../src/loss/loss-input.ts"
import type { LossInput } from "../../src/loss/token-loss.ts"
import { scheduleValue } from "../../src/options/schedule.ts"
import { now, row } from "./inputs.ts"

const file = new URL("../../../shared/vectors/successors.json", import.meta.url)
const absent = existsSync(file) ? "" : " (skipped: ../shared/vectors/successors.json is not here)"

interface Expected {
  readonly loss: number
  /** [sequences][tokens], 0 behind a sequence's end. */
  readonly dlogp: number[][]
}

interface Vectors {
  readonly inputs: Record<"mask" | "old_logp" | "logp", number[][]> & { readonly advantage_per_sequence: number[] }
  readonly params: Record<"clip_low" | "clip_high" | "dual_clip_c", number>
  readonly expected: Record<
    "ppo_clip_dual" | "ppo_clip_no_dual",
    { readonly by_aggregation: Record<string, Expected> }
  > &
    Record<"gspo_clip.2/.28" | `holder_${"seq" | "token"}_p=${number}`, Expected>
}

const aggregations: Record<string, Aggregation> = {
  "token-mean": "token-mean",
  "seq-mean-token-sum": "sequence-mean-token-sum",
  "seq-mean-token-mean": "sequence-mean-token-mean",
}

describe.skipIf(absent)(`losses against the shared vectors${absent}`, () => {
  const load = (): Vectors => JSON.parse(readFileSync(file, "utf8")).losses

  function input({ inputs }: Vectors): LossInput {
    const active = (values: readonly number[], s: number) => values.filter((_, t) => inputs.mask[s]![t] === 1)
    return lossInput(
      inputs.old_logp.map((values, s) => {
        const logProbs = Float32Array.from(active(values, s))
        return row({ length: logProbs.length, logProbs, advantage: inputs.advantage_per_sequence[s]! })
      }),
      { logProbs: Float32Array.from(inputs.logp.flatMap(active)) },
      now,
    )
  }

  function expectLoss(found: { loss: number; gradient: Float32Array }, wanted: Expected, { inputs }: Vectors): void {
    expect(found.loss).toBeCloseTo(wanted.loss, 6)
    const gradient = wanted.dlogp.flatMap((values, s) => values.filter((_, t) => inputs.mask[s]![t] === 1))
    expect(found.gradient).toHaveLength(gradient.length)
    for (const [t, value] of gradient.entries()) expect(found.gradient[t]).toBeCloseTo(value, 6)
  }

  it.each(Object.entries(aggregations))("PPO with and without the dual clip, by %s", (name, aggregation) => {
    const v = load()
    const { clip_low: clipLow, clip_high: clipHigh, dual_clip_c } = v.params
    for (const [expected, clipDual] of [
      ["ppo_clip_dual", dual_clip_c],
      ["ppo_clip_no_dual", Infinity],
    ] as const) {
      const found = composeLoss(clippedSurrogate({ clipLow, clipHigh, clipDual }), { aggregation }).evaluate(input(v))
      expectLoss(found, v.expected[expected].by_aggregation[name]!, v)
    }
  })

  it.each([2, 1, 0, -1, -2])("HölderPO of sequences and of tokens, p = %d", (p) => {
    const v = load()
    const clips = { clipLow: v.params.clip_low, clipHigh: v.params.clip_high }
    const found = (variant: HolderOptions["variant"]) =>
      composeLoss(holderPo({ p, variant, ...clips })).evaluate(input(v))
    expectLoss(found("sequence"), v.expected[`holder_seq_p=${p}`]!, v)
    expectLoss(found("token"), v.expected[`holder_token_p=${p}`]!, v)
  })

  it("p of HölderPO, by each of its schedules", () => {
    const { params, inputs, expected } = JSON.parse(readFileSync(file, "utf8")).holder_p_schedule
    const { p_min: lowest, p_max: highest, steps: over, power } = params
    for (const [name, wanted] of Object.entries<number[]>(expected)) {
      const ramp = holderSchedule(name as HolderScheduleName, { lowest, highest, over, power })
      for (const [i, iteration] of inputs.step.entries())
        expect(scheduleValue(ramp, { iteration, iterations: 1000 })).toBeCloseTo(wanted[i]!, 9)
    }
  })

  it("GSPO", () => {
    const v = load()
    const gspo = clippedSurrogate({
      clipLow: 0.2,
      clipHigh: 0.28,
      importanceSamplingLevel: "sequence",
      clipDual: Infinity,
    })
    expectLoss(
      composeLoss(gspo, { aggregation: "sequence-mean-token-mean" }).evaluate(input(v)),
      v.expected["gspo_clip.2/.28"],
      v,
    )
  })
})
