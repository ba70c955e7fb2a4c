import type { IterationReport } from "../../runs/report.ts"
import type { RecordedGroup } from "./recorded.ts"

// Data of the page, and its sources: a server that reads run folders, or the report that contains the page.

/** State of a run: progress and settings. */
export interface RunInfo {
  /** Identifier in requests. */
  readonly id: string
  /** Name on the page: the shortest part of the folder's path that distinguishes runs. */
  readonly name: string
  /** "running" while a process works in its folder. */
  readonly state: "running" | "stopped" | "done"
  /** Number of completed iterations. */
  readonly iteration: number
  /** Planned number of iterations; absent where unknown. */
  readonly iterations?: number
  /** Time of the last report, ISO 8601. */
  readonly time?: string
  /** Estimated seconds left, at the pace of the last iterations; absent if the run is done or the number of iterations is unknown. */
  readonly secondsLeft?: number
  /** Values of the configuration by dotted key, secrets redacted. */
  readonly settings: Readonly<Record<string, string | number | boolean | null>>
}

/** Reports since `cursor`. */
export interface ReportPage {
  readonly run: RunInfo
  /** Cursor for the next request. */
  readonly cursor: string
  /** Whether earlier reports are obsolete: the run restarted, or went back to a checkpoint. */
  readonly reset: boolean
  readonly reports: readonly IterationReport[]
}

/** All recorded episodes as columns, [episodes], ordered by iteration, group and member. */
export interface EpisodePage {
  readonly cursor: string
  readonly reset: boolean
  readonly iteration: readonly number[]
  readonly group: readonly number[]
  readonly member: readonly number[]
  /** Index into `tasks`. */
  readonly task: readonly number[]
  /** Index into `outcomes`. */
  readonly outcome: readonly number[]
  /** Null where the environment reports no success. */
  readonly success: readonly (number | null)[]
  readonly return: readonly number[]
  readonly steps: readonly number[]
  /** Number of sampled tokens. */
  readonly tokens: readonly number[]
  /** Distinct task labels: shortened JSON. */
  readonly tasks: readonly string[]
}

/** Episodes that a report contains. */
export interface Kept {
  /** Creation time, ISO 8601. */
  readonly time: string
  /** Number of recorded groups. */
  readonly recorded: number
  /** Groups that the report contains completely. */
  readonly groups: readonly { readonly run: string; readonly iteration: number; readonly group: number }[]
}

export interface Source {
  /** Whether runs may progress, so that polling makes sense; false for a report. */
  readonly live: boolean
  runs(signal?: AbortSignal): Promise<readonly RunInfo[]>
  reports(run: string, cursor?: string, signal?: AbortSignal): Promise<ReportPage>
  episodes(run: string, cursor?: string, signal?: AbortSignal): Promise<EpisodePage>
  /** Undefined if the group is not available (a report contains some only). */
  group(run: string, iteration: number, group: number, signal?: AbortSignal): Promise<RecordedGroup | undefined>
  /** Undefined if all recorded episodes are available. */
  kept?(): Promise<Kept | undefined>
}
