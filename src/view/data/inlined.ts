import type { RecordedGroup } from "./recorded.ts"
import type { EpisodePage, ReportPage, RunInfo } from "./source.ts"

/** Contents of a report. */
export interface Inlined {
  readonly runs: readonly {
    readonly info: RunInfo
    readonly reports: ReportPage
    readonly episodes: EpisodePage
    readonly groups: readonly RecordedGroup[]
  }[]
  /** Evaluation episodes of the runs, by their own ids (`evaluationsOf`). */
  readonly evaluations?: readonly {
    readonly info: Pick<RunInfo, "id">
    readonly episodes: EpisodePage
    readonly groups: readonly RecordedGroup[]
  }[]
  /** Creation time, and number of recorded groups, of which the report contains some. */
  readonly made?: { readonly time: string; readonly recorded: number }
}

/**
 * Parts of a report by name. In the page, each part is a line with the name, a space, and the gzipped JSON in base64. So the page unpacks
 * only what it shows, and is drawn before the episodes are unpacked.
 */
export function* inlinedParts({
  runs,
  evaluations = [],
  made,
}: Inlined): Generator<readonly [name: string, value: unknown]> {
  yield ["runs", runs.map(({ info }) => info)]
  if (made) yield ["made", made]
  for (const { info, reports } of runs) yield [inlinedName("reports", info.id), reports]
  for (const { info, episodes, groups } of [
    ...runs,
    ...evaluations.filter(({ episodes }) => episodes.iteration.length > 0),
  ]) {
    yield [inlinedName("episodes", info.id), episodes]
    for (const group of groups) yield [inlinedName("group", info.id, group.iteration, group.group), group]
  }
}

/** Name of a part, without spaces for every run id. */
export function inlinedName(kind: "reports" | "episodes" | "group", ...of: readonly (string | number)[]): string {
  return [kind, ...of.map((one) => encodeURIComponent(one))].join("/")
}

/** Group of a part by its name; undefined for other parts. */
export function groupNamed(name: string): { run: string; iteration: number; group: number } | undefined {
  const [kind, run = "", iteration, group] = name.split("/").map(decodeURIComponent)
  return kind === "group" ? { run, iteration: Number(iteration), group: Number(group) } : undefined
}
