import { outcomes, resultOf, results } from "../../rollout/outcome.ts"
import type { EpisodePage } from "./source.ts"

/** Columns by which episodes can be sorted. */
export const columns = [
  "iteration",
  "group",
  "member",
  "task",
  "result",
  "outcome",
  "return",
  "steps",
  "tokens",
] as const
export type Column = (typeof columns)[number]

/** Recorded episodes of a run as typed columns, [episodes], so that tens of thousands can be filtered within a frame. */
export interface EpisodeTable {
  readonly length: number
  readonly iteration: Int32Array
  readonly group: Int32Array
  readonly member: Int32Array
  /** Index in `tasks`. */
  readonly task: Int32Array
  /** Index in `outcomes`. */
  readonly outcome: Uint8Array
  /** Index in `results`. */
  readonly result: Uint8Array
  /** NaN for a non-finite return. */
  readonly return: Float64Array
  readonly steps: Int32Array
  readonly tokens: Int32Array
  readonly tasks: readonly string[]
  /** Bits of the `marks` that each episode has. */
  readonly marks: Uint8Array
  /** Whether the recordings count problems, at least some of them. */
  readonly isCounted: boolean
  /** Iterations whose recording is damaged, ascending. */
  readonly unreadable: readonly number[]
}

/** What episodes can be selected by, besides their results: group with different returns, loops, and problems. */
export const marks = ["mixed", "loop", "invalid", "truncated", "rejected"] as const
export type Mark = (typeof marks)[number]

export function markBit(mark: Mark): number {
  return 1 << marks.indexOf(mark)
}

/** Marks of each episode. An episode is a loop if at least half of its steps are in states that it had visited before. */
function marksOf({ iteration, group, outcome, return: earned, steps, problems }: EpisodePage): number[] {
  const bits = steps.map((count, at) => {
    const isLoop = count > 1 && 2 * (problems.revisits[at] ?? 0) >= count
    const own = (["invalid", "truncated", "rejected"] as const).filter((name) => (problems[name][at] ?? 0) > 0)
    return own.reduce((sum, name) => sum | markBit(name), isLoop ? markBit("loop") : 0)
  })
  const unscored = [outcomes.indexOf("failed"), outcomes.indexOf("excluded")]
  for (let from = 0, to = 0; from < bits.length; from = to) {
    while (to < bits.length && iteration[to] === iteration[from] && group[to] === group[from]) to++
    const scored = earned.slice(from, to).filter((_, at) => !unscored.includes(outcome[from + at]!))
    if (scored.some((one) => one !== scored[0])) for (let at = from; at < to; at++) bits[at]! |= markBit("mixed")
  }
  return bits
}

/** Appends a page of episodes to a table. */
export function episodeTable(page: EpisodePage, before?: EpisodeTable): EpisodeTable {
  const known = page.reset ? undefined : before
  const tasks = [...(known?.tasks ?? [])]
  const places = new Map(tasks.map((label, place) => [label, place]))
  const placed = page.tasks.map((label) => {
    const place = places.get(label) ?? tasks.push(label) - 1
    places.set(label, place)
    return place
  })
  const start = known?.length ?? 0
  const length = start + page.iteration.length
  const joined = <Kind extends Int32Array | Uint8Array | Float64Array>(
    made: Kind,
    earlier: Kind | undefined,
    values: readonly number[],
  ) => {
    if (earlier) made.set(earlier)
    made.set(values, start)
    return made
  }
  const result = page.success.map((one) => results.indexOf(resultOf(one)))
  const task = page.task.map((place) => placed[place]!)
  return {
    length,
    iteration: joined(new Int32Array(length), known?.iteration, page.iteration),
    group: joined(new Int32Array(length), known?.group, page.group),
    member: joined(new Int32Array(length), known?.member, page.member),
    task: joined(new Int32Array(length), known?.task, task),
    outcome: joined(new Uint8Array(length), known?.outcome, page.outcome),
    result: joined(new Uint8Array(length), known?.result, result),
    return: joined(
      new Float64Array(length),
      known?.return,
      page.return.map((one) => one ?? Number.NaN), // JSON has null for NaN
    ),
    steps: joined(new Int32Array(length), known?.steps, page.steps),
    tokens: joined(new Int32Array(length), known?.tokens, page.tokens),
    tasks,
    marks: joined(new Uint8Array(length), known?.marks, marksOf(page)),
    isCounted: (known?.isCounted ?? false) || page.problems.invalid.some((count) => count !== null),
    unreadable: [...new Set([...(known?.unreadable ?? []), ...page.unreadable])].sort((a, b) => a - b),
  }
}

/** Indices of all episodes sorted by a column; the sort is stable. */
export function orderedBy(table: EpisodeTable, column: Column, descending: boolean): Uint32Array {
  const keys = Float64Array.from(column === "task" ? alphabetical(table) : table[column], (key) =>
    Number.isNaN(key) ? Number.NEGATIVE_INFINITY : key,
  )
  const sign = descending ? -1 : 1
  return Uint32Array.from(keys, (_, place) => place).sort((a, b) => sign * (keys[a]! - keys[b]!) || a - b)
}

function alphabetical({ task, tasks }: EpisodeTable): Int32Array {
  const rank = new Int32Array(tasks.length)
  const sorted = tasks.map((_, place) => place).sort((a, b) => order.compare(tasks[a]!, tasks[b]!))
  for (const [at, place] of sorted.entries()) rank[place] = at
  return task.map((place) => rank[place]!)
}

/** Order of labels with numbers by value: seed 9 before seed 10. */
const order = new Intl.Collator("en", { numeric: true })
