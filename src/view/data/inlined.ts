import type { RecordedGroup } from "./recorded.ts"
import type { EpisodePage, ReportPage, RunInfo } from "./source.ts"

/** What a report holds. */
export interface Inlined {
  readonly runs: readonly {
    readonly info: RunInfo
    readonly reports: ReportPage
    readonly episodes: EpisodePage
    readonly groups: readonly RecordedGroup[]
  }[]
  /** When it was made, and how many groups were recorded, of which it holds some. */
  readonly made?: { readonly time: string; readonly recorded: number }
}

/**
 * Its parts by name. In the page each is a line of its own: the name, a space, JSON packed by gzip, in base64. So the page unpacks only
 * what is looked at, and is drawn before the episodes are.
 */
export function* inlinedParts({ runs, made }: Inlined): Generator<readonly [name: string, value: unknown]> {
  yield ["runs", runs.map(({ info }) => info)]
  if (made) yield ["made", made]
  for (const { info, reports, episodes, groups } of runs) {
    yield [inlinedName("reports", info.id), reports]
    yield [inlinedName("episodes", info.id), episodes]
    for (const group of groups) yield [inlinedName("group", info.id, group.iteration, group.group), group]
  }
}

/** A part's name: one word, whatever a run's id is. */
export function inlinedName(kind: "reports" | "episodes" | "group", ...of: readonly (string | number)[]): string {
  return [kind, ...of.map((one) => encodeURIComponent(one))].join("/")
}

/** Which group a part is, by its name; undefined where it is another part. */
export function groupNamed(name: string): { run: string; iteration: number; group: number } | undefined {
  const [kind, run = "", iteration, group] = name.split("/").map(decodeURIComponent)
  return kind === "group" ? { run, iteration: Number(iteration), group: Number(group) } : undefined
}
