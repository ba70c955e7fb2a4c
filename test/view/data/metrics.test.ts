import { describe, expect, it } from "vitest"
import type { IterationReport } from "../../../src/runs/report.ts"
import { wilsonInterval } from "../../../src/training/wilson.ts"
import { firstMetrics, formatMetric, intervalOf, metricNames, sectionOf } from "../../../src/view/data/metrics.ts"
import { madeReports } from "../made-reports.ts"

const evaluation = {
  episodes: 40,
  failed: 2,
  success: 0.25,
  successInterval: [0.14, 0.4] as const,
  meanReturn: 3,
  meanSteps: 7,
  metrics: { success: 0.25, distance: 1.5 },
}
const report: IterationReport = {
  iteration: 3,
  metrics: { "episode/success": 0.5, "episode/count": 16, "loss/policy": 1 },
  evaluation,
}

describe("metrics of a report", () => {
  it("have no interval where nobody told of success", () => {
    const silent = { ...report, evaluation: { ...evaluation, success: 0, metrics: {} } }
    expect(intervalOf(silent, "evaluation/success")).toBeUndefined()
  })

  it("have the interval that was reported, or Wilson's of the episodes that were played", () => {
    expect(intervalOf(report, "evaluation/success")).toEqual([0.14, 0.4])
    expect(intervalOf(report, "episode/success")).toEqual(wilsonInterval(8, 16))
    expect(intervalOf(report, "loss/policy")).toBeUndefined()
    expect(intervalOf({ iteration: 1, metrics: { "episode/success": 1 } }, "episode/success")).toBeUndefined()
  })

  it("are named once, the ends of intervals not at all", () => {
    expect([...metricNames([report, report])].filter((name) => name.startsWith("evaluation/")).sort()).toEqual(
      ["distance", "episodes", "failed", "return", "steps", "success"].map((name) => `evaluation/${name}`),
    )
  })

  it("are shown by what says most, and by what there is where none of that is known", () => {
    const names = metricNames(madeReports(20, 1))
    expect(firstMetrics(names).slice(0, 3)).toEqual(["evaluation/success", "episode/success", "episode/return"])
    expect(firstMetrics(names).every((name) => names.has(name))).toBe(true)
    expect(firstMetrics(new Set(["mine/a", "mine/b"]))).toEqual(["mine/a", "mine/b"])
  })

  it("are in sections, and shares are in percent", () => {
    const names = [
      "evaluation/success",
      "episode/boxes",
      "episode/truncated",
      "loss/policy",
      "step-group/size",
      "time/run",
      "my/own",
    ]
    expect(names.map(sectionOf)).toEqual(["Success", "Success", "Soundness", "Learning", "Credit", "Time", "Other"])
    expect([formatMetric("episode/success", 0.125), formatMetric("loss/policy", 0.125)]).toEqual(["12.5 %", "0.125"])
  })
})
