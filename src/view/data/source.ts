import type { IterationReport } from "../../runs/report.ts"
import type { Overview } from "./overview.ts"
import type { PageGroup } from "./sent-group.ts"

// Data of the page, and its sources: a server that reads run folders, or the report that contains the page.

/** State of a run: progress and settings. */
export interface RunInfo {
  /** Identifier in requests. */
  readonly id: string
  /** Name on the page: the shortest part of the folder's path that distinguishes runs. */
  readonly name: string
  /** "running" while a process works in its folder; "deleted" on the page, if the folder was removed while the page is open. */
  readonly state: "running" | "stopped" | "done" | "deleted"
  /** Number of completed iterations. */
  readonly iteration: number
  /** Planned number of iterations; absent where unknown. */
  readonly iterations?: number
  /** Time of the last report, ISO 8601. */
  readonly time?: string
  /** Estimated seconds left, at the pace of the last iterations; absent if the run is done or the number of iterations is unknown. */
  readonly secondsLeft?: number
  /** Iterations whose checkpoints exist, newest first; absent if there are none. */
  readonly checkpoints?: readonly number[]
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

/**
 * Counts of problems of an episode: steps with an invalid action, truncated completions, steps in a state that the episode had visited
 * before, and rejected calls of an agent or actions of OpenEnv.
 */
export const problemCounts = ["invalid", "truncated", "revisits", "rejected"] as const
export type ProblemCount = (typeof problemCounts)[number]

/** All recorded episodes as columns, [episodes], ordered by iteration, group and member. */
export interface EpisodePage {
  readonly cursor: string
  readonly reset: boolean
  readonly iteration: readonly number[]
  /** Index of the task in its iteration, from 0. */
  readonly group: readonly number[]
  /** Index of the episode in its group, from 0. */
  readonly member: readonly number[]
  /** Index into `tasks`. */
  readonly task: readonly number[]
  /** Index into `outcomes`. */
  readonly outcome: readonly number[]
  /** Null where the environment reports no success. */
  readonly success: readonly (number | null)[]
  /** Undiscounted return. */
  readonly return: readonly number[]
  /** Number of steps. */
  readonly steps: readonly number[]
  /** Number of sampled tokens. */
  readonly tokens: readonly number[]
  /** Numbers of problems; null in recordings of earlier versions. */
  readonly problems: Readonly<Record<ProblemCount, readonly (number | null)[]>>
  /** Distinct task labels: shortened JSON. */
  readonly tasks: readonly string[]
  /** Iterations whose recording is damaged, so that they are missing. */
  readonly unreadable: readonly number[]
}

/** Page without episodes. */
export const noEpisodes: EpisodePage = {
  ...{ cursor: "", reset: true, iteration: [], group: [], member: [], task: [], outcome: [], success: [] },
  ...{ return: [], steps: [], tokens: [], tasks: [], unreadable: [] },
  problems: { invalid: [], truncated: [], revisits: [], rejected: [] },
}

/** Episodes that a report contains. */
export interface Kept {
  /** Creation time, ISO 8601. */
  readonly time: string
  /** Number of recorded groups. */
  readonly recorded: number
  /** Number of iterations that the curves have, and of all; absent if they have all. */
  readonly iterations?: { readonly shown: number; readonly all: number }
  /** Groups that the report contains completely. */
  readonly groups: readonly { readonly run: string; readonly iteration: number; readonly group: number }[]
}

/** Result of a search, which may have searched only some iterations. */
export interface Found {
  /** First matching step of each matching episode. */
  readonly matches: readonly {
    readonly iteration: number
    readonly group: number
    readonly member: number
    readonly step: number
  }[]
  /** Iteration before which the search can be continued; absent if all were searched. */
  readonly next?: number
}

/** Source of the data. Requests for a run that no longer exists return undefined. */
export interface Source {
  /** Whether runs may progress, so that polling makes sense; false for a report. */
  readonly live: boolean
  runs(signal?: AbortSignal): Promise<readonly RunInfo[]>
  /** Overview of a run, computed from all of its reports. */
  overview(run: string, signal?: AbortSignal): Promise<Overview | undefined>
  reports(run: string, cursor?: string, signal?: AbortSignal): Promise<ReportPage | undefined>
  episodes(run: string, cursor?: string, signal?: AbortSignal): Promise<EpisodePage | undefined>
  /**
   * Searches the texts of recorded episodes, ignoring case: observations, completions and actions; the newest iterations first.
   *
   * @param before - continues before this iteration
   */
  search(run: string, text: string, before?: number, signal?: AbortSignal): Promise<Found | undefined>
  /**
   * Group of episodes; undefined if it is not available (a report contains some only).
   *
   * @param members - members whose prompts and tokens are needed. Reports have them all. Default: all
   */
  group(
    run: string,
    iteration: number,
    group: number,
    members?: readonly number[],
    signal?: AbortSignal,
  ): Promise<PageGroup | undefined>
  /** Undefined if all recorded episodes are available. */
  kept?(): Promise<Kept | undefined>
}

const ofEvaluations = "~evaluation"

/** Id by which the evaluation episodes of a run are requested. Their groups have one episode each, and no advantages. */
export function evaluationsOf(run: string): string {
  return `${baseRun(run)}${ofEvaluations}`
}

/** Id of the run of an id, which may be that of its evaluation episodes. */
export function baseRun(id: string): string {
  return isEvaluations(id) ? id.slice(0, -ofEvaluations.length) : id
}

export function isEvaluations(id: string): boolean {
  return id.endsWith(ofEvaluations)
}
