import { describe, expect, it } from "vitest"
import { programName } from "../../src/cli/arguments.ts"
import { formatBar, formatDuration, formatNumber, formatShare, shortened } from "../../src/cli/terminal/format.ts"
import { type Output, Screen } from "../../src/cli/terminal/screen.ts"
import { describeEvaluation, TrainingView } from "../../src/cli/terminal/training-view.ts"
import { visible } from "../../src/util/visible.ts"

const esc = "\x1b"

const control = new RegExp(`${esc}\\[(\\d+)A|${esc}\\[J|\n|[^\n${esc}]+`, "g")

/** What a terminal shows after all that was written: knows line feeds, "up n rows" and "clear to the end". */
function shown(written: string): string[] {
  const rows = [""]
  let row = 0
  for (const [part] of written.matchAll(control)) {
    if (part === "\n") {
      row++
      rows[row] ??= ""
    } else if (part === `${esc}[J`) rows.splice(row, Number.POSITIVE_INFINITY, "")
    else if (part.startsWith(esc)) row -= Number(/\d+/.exec(part)![0])
    else rows[row] += part
  }
  return rows.slice(0, -1)
}

/** Keeps what is written to it. */
class FakeOutput implements Output {
  written = ""
  readonly isTTY: boolean
  readonly columns: number

  constructor(columns = 80, isTTY = true) {
    this.columns = columns
    this.isTTY = isTTY
  }

  write(text: string): void {
    this.written += text
  }
}

describe("visible", () => {
  it.each([
    ["plain text, ünïcode 漢字 √ and\nline feeds", "plain text, ünïcode 漢字 √ and\nline feeds"],
    ["\x1b[31mred\x1b[0m \x1b]0;title\x07", "\\x1b[31mred\\x1b[0m \\x1b]0;title\\x07"],
    ["\x9b31m\x00\x7f\x08", "\\x9b31m\\x00\\x7f\\x08"],
    ["over\rwritten\tby", "over\\rwritten\\tby"],
    ["\u202eevil\u2066\u200b\ufeff", "\\u{202e}evil\\u{2066}\\u{200b}\\u{feff}"],
    ["\u2028\u2029\ue000", "\\u{2028}\\u{2029}\\u{e000}"],
    ["\ud800 alone", "\\u{d800} alone"],
    ["\u{e0041}", "\\u{e0041}"],
  ])("shows %j as %j", (text, expected) => {
    expect(visible(text)).toBe(expected)
  })

  it("leaves no control characters except line feeds", () => {
    const all = Array.from({ length: 0x3000 }, (_, code) => String.fromCharCode(code)).join("")
    expect(visible(all).replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
  })
})

describe("the program's name", () => {
  const bin = "/project/node_modules/.bin"
  it.each([
    [{ PATH: "/usr/bin" }, "/usr/local/bin/gigpo", "gigpo"],
    [{ PATH: "/usr/bin" }, `${bin}/gigpo`, "npx gigpo"],
    [{ PATH: `/usr/bin:${bin}` }, `${bin}/gigpo`, "gigpo"],
    [{ PATH: `/usr/bin:${bin}`, npm_command: "exec" }, `${bin}/gigpo`, "npx gigpo"],
    [{ PATH: "/usr/bin", npm_command: "run-script" }, `${bin}/gigpo`, "npx gigpo"],
    [{}, undefined, "gigpo"],
  ])("in %j as %s is %s", (env, script, name) => {
    expect(programName(env, script)).toBe(name)
  })
})

describe("formatted numbers", () => {
  it("have three digits", () => {
    const texts = [0, 0.0123456, -0.5, 1, 12.345, 123.4, 12_345.6, 1e-6, 3.2e12, 0.99999].map(formatNumber)
    expect(texts).toEqual(["0", "0.0123", "-0.5", "1", "12.3", "123", "12,346", "1.0e-6", "3.2e+12", "1"])
  })

  it("show durations in suitable units", () => {
    const texts = [0.04, 8.54, 9.96, 45, 99.6, 720, 7_800, 172_740, 273_600].map(formatDuration)
    expect(texts).toEqual(["0.0 s", "8.5 s", "10 s", "45 s", "2 min", "12 min", "2 h 10 min", "47 h 59 min", "3 d 4 h"])
  })

  it("show shares and progress", () => {
    expect([0, 0.4302, 1].map(formatShare)).toEqual(["0.0 %", "43.0 %", "100.0 %"])
    expect(
      [
        [0, 4],
        [1, 4],
        [4, 4],
        [9, 4],
        [0, 0],
      ].map(([done, total]) => formatBar(done!, total!, 4)),
    ).toEqual(["░░░░", "█░░░", "████", "████", "░░░░"])
  })
})

describe("a screen", () => {
  it("redraws its block in place and keeps the lines above", () => {
    const output = new FakeOutput()
    const screen = new Screen(output)
    screen.show(["one", "two"], true)
    screen.print("kept")
    screen.show(["three"], true)
    expect(shown(output.written)).toEqual(["kept", "three"])
    screen.print("kept too\nin two rows")
    expect(shown(output.written)).toEqual(["kept", "kept too", "in two rows", "three"])
    screen.keep()
    screen.show(["next"], true)
    screen.clear()
    expect(shown(output.written)).toEqual(["kept", "kept too", "in two rows", "three"])
  })

  it("shortens lines that would wrap, by characters", () => {
    const output = new FakeOutput(6)
    new Screen(output).show(["123456789", "████████"], true)
    expect(shown(output.written)).toEqual(["12345", "█████"])
  })

  it.each([
    [18, "success 0.43"],
    [19, "success 0.43"],
    [27, "success 0.43"],
    [28, "success 0.43   return -12.5"],
    [80, "success 0.43   return -12.5   steps 9"],
    [10, "success"],
  ])("leaves whole columns in a width of %s", (columns, line) => {
    const output = new FakeOutput(columns)
    new Screen(output).show(["success 0.43   return -12.5   steps 9"], true)
    expect(shown(output.written)).toEqual([line])
  })

  it("breaks an evaluation between its numbers", () => {
    const line = "evaluation after 12: success 43.0 % (95 %: 37.1 % to 49.1 %), return 1.92, steps 9.1"
    const widths = Array.from({ length: 70 }, (_, index) => 20 + index)
    const numbers = line.match(/[\d.]+/g)!
    for (const width of widths) {
      const kept = shortened(line, width)
      expect(line.startsWith(kept)).toBe(true)
      expect(kept.length).toBeLessThanOrEqual(width)
      expect(kept.match(/[\d.]+/g) ?? []).toEqual(numbers.slice(0, (kept.match(/[\d.]+/g) ?? []).length))
    }
    expect(shortened(line, 70)).toBe("evaluation after 12: success 43.0 % (95 %: 37.1 % to 49.1 %)")
  })

  it("prevents its texts from moving the cursor", () => {
    const output = new FakeOutput()
    const screen = new Screen(output)
    screen.show([`a${esc}[5A`], true)
    screen.print(`b${esc}[2J\r`)
    expect(shown(output.written)).toEqual(["b\\x1b[2J\\r", "a\\x1b[5A"])
  })

  it("shows no blocks and writes no escape codes without a terminal", () => {
    const output = new FakeOutput(80, false)
    const screen = new Screen(output)
    screen.show(["block"], true)
    screen.print("line")
    screen.clear()
    expect(output.written).toBe("line\n")
  })
})

describe("the view of a training", () => {
  const metrics = {
    "episode/success": 0.43,
    "episode/return": 1.92,
    "loss/policy": 0.0123,
    "policy/kl": 0.001,
    "policy/entropy": 0.83,
  }
  const evaluation = {
    episodes: 4,
    failed: 1 / 4,
    success: 0.5,
    successInterval: [0.15, 0.85],
    meanReturn: 2,
    meanSteps: 9,
    metrics: { success: 0.5 },
  } as const

  it("omits success if it is not reported", () => {
    expect(describeEvaluation({ ...evaluation, metrics: {} })).toBe(
      "success not reported, return 2, steps 9, 25.0 % failed",
    )
  })

  it("is one block on a terminal", () => {
    const output = new FakeOutput(120)
    const view = new TrainingView(new Screen(output), 10, 0)
    view.progress({ stage: "rollout", done: 4, total: 4 })
    view.report({ iteration: 1, metrics, evaluation })
    view.progress({ stage: "update", done: 1, total: 1 })
    expect(shown(output.written)).toEqual([
      "iteration 2/10  ████████████████████  update 1/1",
      "success 0.43   return 1.92",
      "loss 0.0123   KL(old) 0.001   entropy 0.83",
      expect.stringMatching(/^\d.* elapsed {3}about .* left$/),
      "evaluation after 1: success 50.0 % (95 %: 15.0 % to 85.0 %), return 2, steps 9, 25.0 % failed",
    ])
  })

  const climbing = (count: number) =>
    Array.from({ length: count }, (_, at) => ({
      iteration: at + 1,
      metrics: { "episode/success": at / 10, "episode/return": at },
    }))
  const played = (outcome: "terminated" | "truncated", seed: number, success?: number) => ({
    ...{ task: { seed, name: `${esc}[31m`, at: seed === 3 ? "#".repeat(50) : "" }, index: 0 },
    episodes: [{ steps: [], outcome, return: seed / 2, metrics: success === undefined ? {} : { success } }],
  })

  it("draws the curves of the whole run on a terminal, and the last episodes below", () => {
    const output = new FakeOutput(80)
    const view = new TrainingView(new Screen(output), 10, 5, climbing(8))
    view.report({ iteration: 6, metrics: { ...metrics, "episode/success": 1 } })
    const [, , , , ...drawn] = shown(output.written)
    expect(drawn.map((line) => line.slice(0, 8).trimEnd())).toEqual([
      "",
      "100.0 %┤",
      ...Array(3).fill("       │"),
      "  0.0 %┤",
      "       └",
    ])
    expect(drawn.at(-1)).toMatch(/└1─+6 +└1─+6$/)
    const groups = [played("truncated", 1, 0), played("terminated", 22, 1), played("truncated", 3)]
    view.observers[0]!.episodes!(6, groups, { advantages: new Float64Array(0) }, [])
    view.progress({ stage: "rollout", done: 12, total: 12 })
    expect(shown(output.written).slice(-4)).toEqual([
      "episodes of iteration 6",
      '✗  return 0.5  0 steps  truncated   {"seed":1,"name":"\\u001b[31m","at":""}',
      '✓   return 11  0 steps  terminated  {"seed":22,"name":"\\u001b[31m","at":""}',
      '·  return 1.5  0 steps  truncated   {"seed":3,"name":"\\u001b[31m","at":"###…',
    ])
  })

  it("never exceeds the height of the terminal", () => {
    for (const rows of [3, 8, 12, 14, 16, 40]) {
      const output = Object.assign(new FakeOutput(80), { rows })
      const view = new TrainingView(new Screen(output), 10, 5, climbing(5))
      view.report({ iteration: 6, metrics })
      view.observers[0]!.episodes!(6, Array(9).fill(played("truncated", 1)), { advantages: new Float64Array(0) }, [])
      view.progress({ stage: "rollout", done: 12, total: 12 })
      const drawn = shown(output.written)
      expect(drawn.length).toBeLessThanOrEqual(rows - 1)
      expect(drawn.some((line) => line.includes("┤"))).toBe(rows >= 12)
      expect(drawn.filter((line) => line.includes("seed")).length).toBe({ 8: 2, 14: 1, 16: 3, 40: 4 }[rows] ?? 0)
    }
  })

  it("has colors if the terminal supports them and they are enabled", () => {
    for (const colours of [true, false]) {
      const output = Object.assign(new FakeOutput(80), { hasColors: () => colours })
      new TrainingView(new Screen(output), 10, 2, climbing(2)).report({ iteration: 3, metrics })
      expect(output.written.includes(`${esc}[36m`)).toBe(colours)
    }
  })

  it("draws nothing without a terminal", () => {
    const output = new FakeOutput(80, false)
    const view = new TrainingView(new Screen(output), 10, 5, climbing(5))
    view.report({ iteration: 6, metrics })
    expect(view.observers).toEqual([])
    expect(output.written).toMatch(/^iteration 6\/10 .*\n$/)
  })

  it("prints each reason of failed episodes once, counts them all, and explains an early end", () => {
    const output = new FakeOutput(80, false)
    const view = new TrainingView(new Screen(output), 10, 0)
    const failure = (reason: string, count: number) => ({ reason, count, task: "{}", environment: "doors" })
    view.report({ iteration: 1, metrics, failures: [failure("doors: no port 1.", 2), failure("late", 1)] })
    view.report({ iteration: 2, metrics, failures: [failure("doors: no port 2.", 2)], stopped: "enough (stop.kl)" })
    const told = output.written.split("\n").filter((line) => !line.startsWith("iteration"))
    expect(told).toEqual([
      "Episodes fail: 2 × doors: no port 1, first in task {}.",
      "Episodes fail: 1 × doors: late, first in task {}.",
      "The run ends after iteration 2 of 10: enough (stop.kl). To continue, raise that limit and resume the run.",
      "",
    ])
    expect(view.failures).toEqual(["4 × doors: no port 1, first in task {}", "1 × doors: late, first in task {}"])
  })

  it("is one line per iteration otherwise", () => {
    const output = new FakeOutput(80, false)
    const view = new TrainingView(new Screen(output), 10, 0)
    view.report({ iteration: 0, metrics: {}, evaluation })
    view.progress({ stage: "rollout", done: 4, total: 4 })
    view.report({ iteration: 1, metrics })
    expect(output.written.split("\n")).toEqual([
      "evaluation after 0: success 50.0 % (95 %: 15.0 % to 85.0 %), return 2, steps 9, 25.0 % failed",
      expect.stringMatching(
        /^iteration 1\/10 {2}success 0.43 {2}return 1.92 {2}loss 0.0123 {2}KL\(old\) 0.001 {2}entropy 0.83 {2}.* elapsed {2}about .* left$/,
      ),
      "",
    ])
  })
})
