import { describe, expect, it } from "vitest"
import { outcomes, results } from "../../../src/rollout/outcome.ts"
import { Random } from "../../../src/util/random.ts"
import { returnBars, successBars } from "../../../src/view/data/episode-bars.ts"
import {
  type EpisodeFilter,
  episodeName,
  open,
  type Range,
  readFilter,
  selectEpisodes,
  writeFilter,
} from "../../../src/view/data/episode-filter.ts"
import { columns, episodeTable, orderedBy } from "../../../src/view/data/episode-table.ts"
import type { EpisodePage } from "../../../src/view/data/source.ts"

function madePage(random: Random, count: number, { reset = true } = {}): EpisodePage {
  const tasks = ["Put the apple away", '{"seed":2}', '{"seed":10}', "<b>", "apple pie"]
  const column = (draw: () => number) => Array.from({ length: count }, draw)
  return {
    cursor: "",
    reset,
    iteration: column(() => 1 + random.below(6)),
    group: column(() => random.below(4)),
    member: column(() => random.below(8)),
    task: column(() => random.below(tasks.length)),
    outcome: column(() => random.below(outcomes.length)),
    success: Array.from({ length: count }, () => [0, 1, null][random.below(3)]!),
    return: column(() => random.below(9) / 4 - 1),
    steps: column(() => 1 + random.below(10)),
    tokens: column(() => random.below(500)),
    tasks,
    problems: {
      invalid: column(() => random.below(2)),
      truncated: column(() => random.below(2)),
      revisits: column(() => random.below(6)),
      rejected: column(() => 0),
    },
    unreadable: [],
  }
}

describe("the table of episodes", () => {
  it("selects what a row by row check of the page selects, in the column's order", () => {
    const random = new Random(7)
    const page = madePage(random, 400)
    const table = episodeTable(page)
    const told = page.success.map((one) => (one === null ? "untold" : one === 1 ? "success" : "failure"))
    const some = <Name>(names: readonly Name[]) => names.filter(() => random.below(3) === 0)
    const range = (least: number, most: number): Range =>
      [open, [least + 1, most - 1], [open[0], least + 2], [most, least]][random.below(4)] as Range
    for (let trial = 0; trial < 60; trial++) {
      const column = columns[random.below(columns.length)]!
      const filter: EpisodeFilter = {
        ...(random.below(2) === 1 && { task: ["APPLE", "seed", "<", "none"][random.below(4)]! }),
        results: some(results),
        outcomes: some(outcomes),
        marks:
          random.below(2) === 0 ? [] : (["invalid", "truncated", "loop"] as const).filter(() => random.below(2) === 0),
        iteration: range(1, 6),
        return: range(-1, 1),
        steps: range(1, 10),
        column,
        descending: random.below(2) === 1,
      }
      const chosen = trial % 3 === 0 ? { iteration: 3, group: 1, members: new Set([0, 2, 4, 6]) } : undefined
      const expected = page.iteration
        .map((_, at) => at)
        .filter((at) => {
          const inside = ([from, to]: Range, value: number) => value >= from && value <= to
          return (
            page.tasks[page.task[at]!]!.toLowerCase().includes(filter.task?.toLowerCase() ?? "") &&
            (filter.results.length === 0 || (filter.results as string[]).includes(told[at]!)) &&
            (!filter.marks.includes("invalid") || page.problems.invalid[at]! > 0) &&
            (!filter.marks.includes("truncated") || page.problems.truncated[at]! > 0) &&
            (!filter.marks.includes("loop") ||
              (page.steps[at]! > 1 && page.problems.revisits[at]! / page.steps[at]! >= 0.5)) &&
            (filter.outcomes.length === 0 || filter.outcomes.includes(outcomes[page.outcome[at]!]!)) &&
            inside(filter.iteration, page.iteration[at]!) &&
            inside(filter.return, page.return[at]!) &&
            inside(filter.steps, page.steps[at]!) &&
            (!chosen || (page.iteration[at] === 3 && page.group[at] === 1 && chosen.members.has(page.member[at]!)))
          )
        })
      const found = selectEpisodes(table, filter, orderedBy(table, column, filter.descending), chosen)
      expect([...found].sort((a, b) => a - b)).toEqual(expected)
      const keys = [...found].map((at) => (column === "task" ? 0 : table[column][at]!))
      expect(keys).toEqual(keys.toSorted((a, b) => (filter.descending ? b - a : a - b)))
    }
  })

  it("orders tasks by their label, numbers by value, and leaves equals as they were", () => {
    const table = episodeTable({ ...madePage(new Random(1), 4), task: [2, 1, 0, 1], tasks: ["b", "a 9", "a 10"] })
    expect([...orderedBy(table, "task", false)]).toEqual([1, 3, 0, 2])
    expect([...orderedBy(table, "task", true)]).toEqual([2, 0, 1, 3])
  })

  it("takes what came later behind what it knew, tasks by their names; begins anew where it must", () => {
    const [first, second] = [madePage(new Random(1), 30), madePage(new Random(2), 20, { reset: false })]
    const more = { ...second, tasks: ["another", ...second.tasks.slice(1)] }
    const before = episodeTable(first)
    const table = episodeTable(more, before)
    expect(table.length).toBe(50)
    expect([...table.return]).toEqual([...first.return, ...second.return])
    const labels = [...first.task.map((task) => first.tasks[task]), ...more.task.map((task) => more.tasks[task])]
    expect([...table.task].map((task) => table.tasks[task])).toEqual(labels)
    expect(table.tasks).toHaveLength(6)
    expect(episodeTable({ ...more, reset: true }, before).length).toBe(20)
  })

  it("marks the episodes of groups whose returns differ, and those that a search has found", () => {
    const page = madePage(new Random(4), 6)
    const table = episodeTable({
      ...page,
      iteration: [1, 1, 1, 1, 2, 2],
      group: [0, 0, 1, 1, 1, 1],
      member: [0, 1, 0, 1, 0, 1],
      return: [1, 0, 1, 1, 0, 7],
      outcome: [0, 0, 0, 0, 0, outcomes.indexOf("failed")],
    })
    const all = orderedBy(table, "iteration", false)
    // A failed episode has no return that could differ.
    expect([...selectEpisodes(table, readFilter({ with: "mixed" }), all)]).toEqual([0, 1])
    const found = new Set([episodeName(1, 1, 0), episodeName(2, 1, 1), episodeName(9, 9, 9)])
    expect([...selectEpisodes(table, readFilter({}), all, { found })]).toEqual([2, 5])
    // Recordings of earlier versions do not count problems.
    const none = page.steps.map(() => null)
    const old = episodeTable({ ...page, problems: { invalid: none, truncated: none, revisits: none, rejected: none } })
    expect([table.isCounted, old.isCounted, selectEpisodes(old, readFilter({ with: "loop" }), all).length]).toEqual([
      true,
      false,
      0,
    ])
  })

  it("a return that is no number is listed, last, and in no range", () => {
    const page = JSON.parse(JSON.stringify({ ...madePage(new Random(3), 3), return: [1, Number.NaN, 0] }))
    const table = episodeTable(page)
    const order = orderedBy(table, "return", true)
    expect([...order]).toEqual([0, 2, 1])
    expect([...selectEpisodes(table, readFilter({}), order)]).toEqual([0, 2, 1])
    expect([...selectEpisodes(table, readFilter({ return: "-5..5" }), order)]).toEqual([0, 2])
  })
})

describe("a filter in an address", () => {
  it("comes back as it was", () => {
    const filters: EpisodeFilter[] = [
      readFilter({}),
      {
        task: "a & b = ü/#?",
        results: ["failure", "untold"],
        outcomes: ["excluded"],
        marks: ["mixed", "rejected"],
        iteration: [3, 9],
        return: [-1.5, Number.POSITIVE_INFINITY],
        steps: [Number.NEGATIVE_INFINITY, 7],
        column: "return",
        descending: false,
      },
    ]
    for (const filter of filters) expect(readFilter(writeFilter(filter))).toEqual(filter)
    expect(writeFilter(readFilter({}))).toEqual({})
  })

  it("asks for nothing that cannot be read", () => {
    const wrong = {
      result: "good,__proto__",
      outcome: "x",
      with: "x,__proto__",
      return: "a..b",
      steps: "..NaN",
      sort: "-constructor",
    }
    expect(readFilter(wrong)).toEqual(readFilter({}))
    expect(readFilter({ iteration: "4" }).iteration).toEqual([4, 4])
  })
})

describe("bars over the list", () => {
  it("count every episode of the selection once, and tell the share that succeeded of those that told", () => {
    const page = madePage(new Random(5), 500)
    const table = episodeTable(page)
    const all = orderedBy(table, "iteration", false)
    const bars = returnBars(table, 8)
    const counts = bars.heights(all).map((height) => height ** 2 * bars.most)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeCloseTo(500)
    expect([bars.edges[0], bars.edges[8]]).toEqual([-1, 1])
    const failures = selectEpisodes(table, readFilter({ result: "failure,untold" }), all)
    const shares = successBars(table)
    expect([...shares.heights(failures)]).toEqual([0, 0, 0, 0, 0, 0])
    expect([...shares.edges]).toEqual([1, 2, 3, 4, 5, 6, 7])
    const third = page.success.filter((one, at) => page.iteration[at] === 3 && one !== null)
    expect(shares.heights(all)[2]).toBeCloseTo(third.filter((one) => one === 1).length / third.length)
  })

  it("stand where there is nothing, or one value", () => {
    const none = episodeTable(madePage(new Random(1), 0))
    expect(successBars(none).heights(new Uint32Array())).toHaveLength(0)
    expect(returnBars(none, 4).heights(new Uint32Array())).toHaveLength(4)
    const same = episodeTable({ ...madePage(new Random(1), 3), return: [2, 2, 2] })
    expect(returnBars(same, 4).heights(Uint32Array.of(0, 1, 2))[0]).toBe(1)
  })
})
