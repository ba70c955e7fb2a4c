import { describe, expect, it } from "vitest"
import { plot } from "../../src/cli/terminal/plot.ts"
import { table } from "../../src/cli/terminal/table.ts"
import { TrainingCurves } from "../../src/cli/terminal/training-curves.ts"

const label = String
const ys = (...values: number[]) => values.map((y, at) => [at + 1, y] as const)

describe("a plot", () => {
  it("sets exactly the dots of its points, two columns and four rows per character", () => {
    const all = Array.from({ length: 8 }, (_, at) => 7 - at)
    expect(plot(ys(...all), { width: 6, height: 2, label })).toEqual(["7┤⠑⢄", "0┤⠀⠀⠑⢄", " └1──8"])
    expect(plot(ys(0, 3), { width: 3, height: 1, label })).toEqual(["0┤⡸", " └1─2"])
  })

  it("connects points at any distance", () => {
    expect(plot(ys(0, 7), { width: 4, height: 2, label })).toEqual(["7┤⠀⡜", "0┤⡰⠁", " └1─2"])
    expect(plot(ys(0, 1, 0), { width: 5, height: 1, label })).toHaveLength(2)
    for (const line of plot(ys(0, 9, 0, 9), { width: 30, height: 4, label }).slice(0, -1))
      expect(line).toMatch(/[\u2801-\u28ff]/)
  })

  it("shows the mean of several points per dot", () => {
    const many = Array.from({ length: 1000 }, (_, at) => (at % 2 === 0 ? 0 : 1))
    const [row] = plot(ys(...many), { width: 12, height: 1, range: [0, 1.2], label })
    expect(row).toBe(`  0┤${"⠤".repeat(8)}`)
  })

  it("has an automatic range, or a given one, which clips it", () => {
    const shape = { width: 6, height: 1, label: (value: number) => value.toFixed(1) }
    expect(plot(ys(5), shape)).toEqual(["4.5┤⠄", "   └1"])
    expect(plot(ys(0), shape)[0]).toBe("-1.0┤⠄")
    expect(plot(ys(-9, 9), { ...shape, range: [0, 1] })[0]).toBe("0.0┤⣀⠏")
  })

  it("skips invalid numbers, and is empty if nothing is left or nothing fits", () => {
    const shape = { width: 6, height: 1, label }
    expect(plot(ys(Number.NaN, 1, Number.POSITIVE_INFINITY, 1), shape)[1]).toBe("   └2─4")
    expect(plot([], shape)).toEqual([])
    expect(plot(ys(Number.NaN), shape)).toEqual([])
    expect(plot(ys(12_345), shape)).toEqual([])
  })
})

describe("the curves of a training", () => {
  const reports = Array.from({ length: 9 }, (_, at) => ({
    iteration: at + 1,
    metrics: { "episode/success": at / 8, "episode/return": 10 * at },
  }))

  it("are next to each other if there is room, and fit", () => {
    const text = (width: number) =>
      new TrainingCurves(reports).lines(width).map((line) => (line as { readonly text: string }).text)
    expect(text(80)).toHaveLength(7)
    expect(text(80)[0]).toMatch(/^ {8}success {25,} return$/)
    expect(text(80)[1]).toMatch(/^100\.0 %┤.+ {3}80┤/)
    expect(text(40)[0]).toMatch(/^ {8}success$/)
    for (const width of [20, 40, 51, 52, 80, 300])
      for (const line of text(width)) expect([...line].length).toBeLessThanOrEqual(width)
  })

  it("start with the second point, and count a repeated iteration once", () => {
    expect(new TrainingCurves().lines(80)).toEqual([])
    expect(new TrainingCurves([reports[0]!, reports[0]!]).lines(80)).toEqual([])
    const again = new TrainingCurves([reports[0]!, reports[1]!, reports[1]!]).lines(80)
    expect(again).toEqual(new TrainingCurves(reports.slice(0, 2)).lines(80))
  })

  it("show available metrics: only the return, or nothing", () => {
    const returns = reports.map(({ iteration, metrics }) => ({
      iteration,
      metrics: { "episode/return": metrics["episode/return"] },
    }))
    expect(new TrainingCurves(returns).lines(80)[0]).toMatchObject({ text: expect.stringMatching(/^ +return$/) })
    expect(new TrainingCurves([{ iteration: 1, metrics: {} }]).lines(80)).toEqual([])
  })
})

it("a table has aligned columns, some right-aligned", () => {
  const rows = [["name", "n"], ["漢字", "12"], ["x"]]
  expect(table(rows, [1])).toEqual(["name   n", "漢字  12", "x"])
  expect(table([])).toEqual([])
})
