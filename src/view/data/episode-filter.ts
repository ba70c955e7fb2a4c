import { type Outcome, outcomes, type Result, results } from "../../rollout/outcome.ts"
import { type Column, columns, type EpisodeTable, type Mark, markBit, marks } from "./episode-table.ts"

/** Inclusive range; infinite bounds are open. */
export type Range = readonly [number, number]

/** Filter and order of the list of episodes. */
export interface EpisodeFilter {
  /** Part of the task's label; the case is ignored. */
  readonly task?: string
  /** Accepted results; empty: any. */
  readonly results: readonly Result[]
  readonly outcomes: readonly Outcome[]
  /** Required marks. */
  readonly marks: readonly Mark[]
  readonly iteration: Range
  readonly return: Range
  readonly steps: Range
  readonly column: Column
  readonly descending: boolean
}

/** Episodes of a group, or some of them, or episodes that a search has found. */
export interface Chosen {
  readonly iteration?: number
  readonly group?: number
  /** Members of the group; absent: all. */
  readonly members?: ReadonlySet<number>
  /** Names of found episodes (`episodeName`); absent: all. */
  readonly found?: { has(name: string): boolean }
}

/** Name of an episode in a run. */
export function episodeName(iteration: number, group: number, member: number): string {
  return `${iteration}/${group}/${member}`
}

/** Unlimited range. */
export const open: Range = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
const ranges = ["iteration", "return", "steps"] as const

/** Reads the filter from an address. Invalid values are ignored. */
export function readFilter(query: Readonly<Record<string, string>>): EpisodeFilter {
  const some = <Name extends string>(text: string | undefined, names: readonly Name[]) =>
    names.filter((name) => text?.split(",").includes(name))
  const sort = query.sort ?? "-iteration"
  const column = columns.find((name) => name === sort.replace(/^-/, ""))
  return {
    ...(query.task && { task: query.task }),
    results: some(query.result, results),
    outcomes: some(query.outcome, outcomes),
    marks: some(query.with, marks),
    iteration: readRange(query.iteration),
    return: readRange(query.return),
    steps: readRange(query.steps),
    column: column ?? "iteration",
    descending: column === undefined || sort.startsWith("-"),
  }
}

/** Writes the filter for an address, without defaults. */
export function writeFilter(filter: EpisodeFilter): Record<string, string> {
  const sort = `${filter.descending ? "-" : ""}${filter.column}`
  return {
    ...(filter.task && { task: filter.task }),
    ...(filter.results.length > 0 && { result: filter.results.join(",") }),
    ...(filter.outcomes.length > 0 && { outcome: filter.outcomes.join(",") }),
    ...(filter.marks.length > 0 && { with: filter.marks.join(",") }),
    ...Object.fromEntries(
      ranges.filter((name) => filter[name].some(Number.isFinite)).map((name) => [name, writeRange(filter[name])]),
    ),
    ...(sort !== "-iteration" && { sort }),
  }
}

function readRange(text = ".."): Range {
  const [from = "", to = from] = text.split("..")
  const bound = (word: string, otherwise: number) =>
    word.trim() === "" || !Number.isFinite(Number(word)) ? otherwise : Number(word)
  return [bound(from, open[0]), bound(to, open[1])]
}

function writeRange(range: Range): string {
  return range.map((bound) => (Number.isFinite(bound) ? String(bound) : "")).join("..")
}

/** Indices of the episodes that pass the filter, in a given order. */
export function selectEpisodes(
  table: EpisodeTable,
  filter: EpisodeFilter,
  order: Uint32Array,
  chosen?: Chosen,
): Uint32Array {
  const searched = filter.task?.toLowerCase()
  const task = Uint8Array.from(table.tasks, (label) => Number(!searched || label.toLowerCase().includes(searched)))
  const result = allowed(results, filter.results)
  const outcome = allowed(outcomes, filter.outcomes)
  const wanted = filter.marks.reduce((bits, mark) => bits | markBit(mark), 0)
  const [firstIteration, lastIteration] = filter.iteration
  const [leastReturn, mostReturn] = filter.return
  const anyReturn = !filter.return.some(Number.isFinite) // including NaN
  const [minSteps, mostSteps] = filter.steps
  const found = new Uint32Array(order.length)
  let count = 0
  for (let place = 0; place < order.length; place++) {
    const at = order[place]!
    if (!task[table.task[at]!] || !result[table.result[at]!] || !outcome[table.outcome[at]!]) continue
    if ((table.marks[at]! & wanted) !== wanted) continue
    const iteration = table.iteration[at]!
    if (iteration < firstIteration || iteration > lastIteration) continue
    const earned = table.return[at]!
    if (!anyReturn && !(earned >= leastReturn && earned <= mostReturn)) continue
    if (table.steps[at]! < minSteps || table.steps[at]! > mostSteps) continue
    if (chosen?.iteration !== undefined && (iteration !== chosen.iteration || table.group[at] !== chosen.group))
      continue
    if (chosen?.found && !chosen.found.has(episodeName(iteration, table.group[at]!, table.member[at]!))) continue
    if (chosen?.members && !chosen.members.has(table.member[at]!)) continue
    found[count++] = at
  }
  return found.slice(0, count)
}

function allowed<Name>(names: readonly Name[], selected: readonly Name[]): Uint8Array {
  return Uint8Array.from(names, (name) => Number(selected.length === 0 || selected.includes(name)))
}
