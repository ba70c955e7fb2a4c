import { describe, expect, it } from "vitest"
import type { IterationReport } from "../../../src/runs/report.ts"
import { overviewOf } from "../../../src/view/data/overview.ts"
import { factsOf, learningSentence } from "../../../src/view/page/overview/facts.ts"
import { madeReports } from "../made-reports.ts"
import { madeRun } from "../made-run.ts"

const { info } = madeRun("0", 1, 1)
const reports = (count: number, metrics: (at: number) => Record<string, number>, more: Partial<IterationReport> = {}) =>
  Array.from({ length: count }, (_, at): IterationReport => ({ iteration: at + 1, metrics: metrics(at), ...more }))
const texts = (all: readonly IterationReport[], settings = {}) =>
  overviewOf(all, settings).findings.map(({ text }) => text)

describe("the overview of a run", () => {
  it("has means of the newest values with their change since the first ones, and few points of a line", () => {
    const { metrics } = overviewOf(
      reports(200, (at) => ({ "episode/success": at < 5 ? 0.1 : at >= 195 ? 0.8 : 0.5, "policy/entropy": 1 })),
      {},
    )
    expect(metrics.success).toEqual({
      now: expect.closeTo(0.8),
      change: expect.closeTo(0.7),
      error: 0,
      spark: expect.any(Array),
    })
    expect(metrics.success!.spark).toHaveLength(60)
    expect([metrics.success!.spark[0]! < 0.4, metrics.success!.spark.at(-1)! > 0.8 - 0.3]).toEqual([true, true])
    expect(metrics.entropy).toMatchObject({ now: 1, change: 0 })
    expect(metrics.constant).toBeUndefined()
    const short = overviewOf(
      reports(3, (at) => ({ "episode/success": at / 4 })),
      {},
    )
    expect(short.metrics.success).toEqual({ now: 0.5, change: 0.5, spark: [0, 0.25, 0.5] })
    expect(
      overviewOf(
        reports(1, () => ({ "episode/success": 1 })),
        {},
      ).metrics.success,
    ).toEqual({ now: 1, spark: [1] })
    expect(overviewOf([], {})).toEqual({ metrics: {}, findings: [], warnings: [] })
  })

  it("has the best evaluation and the last one", () => {
    const all = madeReports(40, 1)
    const evaluated = all.filter(({ evaluation }) => evaluation)
    const best = Math.max(...evaluated.map(({ evaluation }) => evaluation!.success))
    expect(overviewOf(all, {}).evaluation).toMatchObject({
      ...{ isReturn: false, best, lastIteration: 40, last: evaluated.at(-1)!.evaluation!.success },
      spark: expect.objectContaining({ length: 4 }),
    })
    const returns = all.map(({ evaluation, ...rest }) => ({
      ...rest,
      ...(evaluation && { evaluation: { ...evaluation, success: 0, metrics: {} } }),
    }))
    expect(overviewOf(returns, {}).evaluation).toMatchObject({
      isReturn: true,
      best: Math.max(...evaluated.map(({ evaluation }) => evaluation!.meanReturn)),
    })
  })

  it("names an evaluation that is clearly below the best one", () => {
    const evaluated = (iteration: number, success: number, [low, high]: readonly [number, number]): IterationReport => {
      const evaluation = { episodes: 64, failed: 0, success, successInterval: [low, high] as const, meanReturn: 0 }
      return { iteration, metrics: {}, evaluation: { ...evaluation, meanSteps: 1, metrics: { success } } }
    }
    const best = evaluated(1, 0.5, [0.4, 0.6])
    expect(texts([best, evaluated(2, 0.1, [0, 0.2])])).toEqual([
      "The last evaluation (10.0 %, iteration 2) is clearly below the best one (50.0 %, iteration 1).",
    ])
    expect(texts([best, evaluated(2, 0.4, [0.3, 0.45])])).toEqual([])
  })

  it("says what is wrong, and nothing of a sound run", () => {
    expect(texts(madeReports(40, 1))).toEqual([])
    const constant = (success: number) => reports(9, () => ({ "group/constant": 0.62, "episode/success": success }))
    expect(texts(constant(0.9))).toEqual([
      "62.0 % of the groups gave no signal, because all their returns are equal: the tasks are too easy.",
    ])
    expect(texts(constant(0.1))[0]).toMatch(/: the tasks are too hard\.$/)
    expect(texts(reports(9, () => ({ "group/constant": 0.62 })))[0]).toMatch(/because all their returns are equal\.$/)
    const unreadable = { "group/constant": 1, "episode/success": 0, "action/valid": 0 }
    expect(texts(reports(9, () => unreadable))).toContain(
      "100.0 % of the groups gave no signal, because all their returns are equal.",
    )
    expect(texts(reports(9, () => ({ "action/valid": 0.6 })))).toEqual([
      expect.stringMatching(/^40\.0 % of the actions/),
    ])
    expect(texts(reports(9, () => ({ "completion/truncated": 0.2 })))).toEqual([
      expect.stringMatching(/^20\.0 % of the completions are truncated/),
    ])
    const failures = [{ reason: "the server is gone", count: 3, task: "", environment: "" }]
    expect(texts(reports(9, () => ({ "episode/failed": 0.25 }), { failures }))).toEqual([
      "25.0 % of the episodes failed, mostly with: the server is gone",
    ])
    const quiet = reports(9, () => ({ "policy/entropy": 0.005 }))
    expect(texts(quiet)).toEqual([expect.stringMatching(/^The entropy has collapsed to 0\.005 nats/)])
    expect(texts(quiet, { "training.guards.minEntropy": 0.001 })).toEqual([])
    expect(texts(reports(2, () => ({ "loss/policy": Number.NaN })))).toEqual([
      "Loss (all terms): the last value is not finite.",
    ])
  })

  it("repeats the newest warning of a guard, without advice, unless it is named already", () => {
    const text =
      "The share of groups with equal returns is 0.97 (guard/constant), above its bound of 0.95. Use other tasks."
    const warned = (iteration: number, metrics: Record<string, number>) =>
      reports(30, () => metrics).map((one) => (one.iteration === iteration ? { ...one, warnings: [text] } : one))
    expect(texts(warned(25, {}))).toEqual([`Guard in iteration 25: ${text.replace(" Use other tasks.", "")}`])
    expect(texts(warned(12, {}))).toEqual([])
    expect(overviewOf(warned(12, {}), {}).warnings).toEqual([{ iteration: 12, text }])
    expect(texts(warned(25, { "group/constant": 0.97 }))).toEqual([expect.stringMatching(/^97\.0 % of the groups/)])
    expect(
      overviewOf(
        reports(2, () => ({}), { stopped: "no progress" }),
        {},
      ).stopped,
    ).toBe("no progress")
  })
})

describe("facts in words", () => {
  it("are shares in percent with points, and others as they are", () => {
    const all = reports(10, (at) => ({
      ...{ "episode/success": at / 10, "policy/entropy": 1 - at / 20, "action/valid": 0.9, "time/iteration": 70 },
    }))
    const run = { ...info, iteration: 10, secondsLeft: 700, state: "running" as const }
    const facts = factsOf(overviewOf(all, {}), run)
    expect(facts.map(({ name, value, note }) => [name, value, note])).toEqual([
      ["success", "70.0 %", "+50.0 points"],
      ["entropy", "0.65", "−0.25"],
      ["valid", "10.0 %", "±0.0 points"],
      ["time", "12 min", "70 s per iteration"],
    ])
    const { secondsLeft: _, ...done } = run
    expect(factsOf(overviewOf(all, {}), done).at(-1)).toMatchObject({ title: "Time per iteration", value: "70 s" })
    expect(learningSentence(overviewOf(all, {}), run)).toBe("Success rose from 20.0 % to 70.0 % in 10 iterations.")
  })

  it("tell a change from chance", () => {
    const noisy = overviewOf(
      reports(10, (at) => ({ "episode/success": [0.3, 0.5][at % 2]! + at / 100 })),
      {},
    )
    expect(learningSentence(noisy, { ...info, iteration: 10 })).toBe(
      "Success has hardly changed in 10 iterations: from 40.0 % to 49.0 %, which may be chance.",
    )
  })

  it("tell of the return without success, of a fall, and of standing still", () => {
    const returns = overviewOf(
      reports(10, (at) => ({ "episode/return": -at })),
      {},
    )
    expect(factsOf(returns, info)[0]).toMatchObject({ name: "return", title: "Return", value: "-7", note: "−5" })
    expect(learningSentence(returns, { ...info, iteration: 10 })).toBe(
      "The return fell from -2 to -7 in 10 iterations.",
    )
    const same = overviewOf(
      reports(10, () => ({ "episode/success": 0.5 })),
      {},
    )
    expect(learningSentence(same, { ...info, iteration: 10 })).toBe("Success has stayed at 50.0 % over 10 iterations.")
    expect(
      learningSentence(
        overviewOf(
          reports(1, () => ({ "episode/success": 1 })),
          {},
        ),
        info,
      ),
    ).toBeUndefined()
  })
})
