import type { IterationReport } from "../../training/options.ts"
import type { RecordedGroup } from "./recorded.ts"

// What the page shows, and from where: a server that reads run folders, or the report that it stands in.

/** A run, as far as it has come. */
export interface RunInfo {
  /** Names it in requests. */
  readonly id: string
  /** What it is called on the page: its folder, as far as it tells runs apart. */
  readonly name: string
  /** "running" while a process works in its folder. */
  readonly state: "running" | "stopped" | "done"
  /** Completed iterations, and how many there are to be, where that is known. */
  readonly iteration: number
  readonly iterations?: number
  /** ISO 8601, of the last report. */
  readonly time?: string
  /** Seconds until it is done, as fast as it was; absent where it is, or nobody knows. */
  readonly secondsLeft?: number
  /** Every value of its configuration by its dotted key. */
  readonly settings: Readonly<Record<string, string | number | boolean | null>>
}

/** What was reported since `cursor`. */
export interface ReportPage {
  readonly run: RunInfo
  /** To be given the next time. */
  readonly cursor: string
  /** Whether what was known before counts no more: the run began anew, or went back to a checkpoint. */
  readonly reset: boolean
  readonly reports: readonly IterationReport[]
}

/** All recorded episodes, a column a property, [episodes], by iteration, group and member. */
export interface EpisodePage {
  readonly cursor: string
  readonly reset: boolean
  readonly iteration: readonly number[]
  readonly group: readonly number[]
  readonly member: readonly number[]
  /** Place in `tasks`. */
  readonly task: readonly number[]
  /** Place in `outcomes`. */
  readonly outcome: readonly number[]
  /** Null where the environment does not tell. */
  readonly success: readonly (number | null)[]
  readonly return: readonly number[]
  readonly steps: readonly number[]
  /** Sampled tokens. */
  readonly tokens: readonly number[]
  /** What tasks are called, each once: their JSON, shortened. */
  readonly tasks: readonly string[]
}

/** What a report holds of the episodes. */
export interface Kept {
  /** When it was made, ISO 8601. */
  readonly time: string
  /** Groups that were recorded. */
  readonly recorded: number
  /** Those that are there whole. */
  readonly groups: readonly { readonly run: string; readonly iteration: number; readonly group: number }[]
}

export interface Source {
  /** Whether runs may go on, so that asking again is worth it. A report's never do. */
  readonly live: boolean
  runs(signal?: AbortSignal): Promise<readonly RunInfo[]>
  reports(run: string, cursor?: string, signal?: AbortSignal): Promise<ReportPage>
  episodes(run: string, cursor?: string, signal?: AbortSignal): Promise<EpisodePage>
  /** Undefined where it is not there (a report holds some only). */
  group(run: string, iteration: number, group: number, signal?: AbortSignal): Promise<RecordedGroup | undefined>
  /** Undefined where all is there that was recorded. */
  kept?(): Promise<Kept | undefined>
}
