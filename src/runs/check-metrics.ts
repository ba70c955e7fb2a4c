import { join } from "node:path"
import { isThere } from "../files/io-error.ts"
import { atOnce, Pace, type Pieces } from "../util/pace.ts"
import { runFiles } from "./files.ts"
import { loggedLines, reportOf } from "./metrics-log.ts"
import type { IterationReport } from "./report.ts"

/** Maximum number of problems that a message lists; further ones are counted. */
const listed = 3

/** Position of a checkpoint in a run. */
export interface Position {
  readonly iteration: number
  /** Completed epochs of a supervised fine-tuning, which reports once per epoch. Its log counts updates. */
  readonly epochs?: number | undefined
}

/**
 * Damage of the metrics.jsonl in a run's folder, as clauses that name lines and iterations; undefined if there is none.
 *
 * @param upTo - position of the checkpoint that the run resumes from: only lines up to it count, and they must reach it.
 * Default: all lines, wherever they end.
 */
export async function findLogDamage(directory: string, upTo?: Position): Promise<string | undefined> {
  const lines: string[] = []
  for await (const line of loggedLines(join(directory, runFiles.metrics))) lines.push(line)
  const fork = await isThere(join(directory, runFiles.fork))
  return await new Pace().through(logDamageInPieces(lines, { fork, upTo }))
}

/** A warning about the metrics.jsonl in a run's folder; undefined if it is whole. */
export async function logWarning(directory: string): Promise<string | undefined> {
  const damage = await findLogDamage(directory)
  return damage && `The ${runFiles.metrics} of the run in ${directory} is damaged: ${damage}. Its other lines are used.`
}

interface Extent {
  /** Whether the run is a fork. Its log may begin at any iteration, or be empty up to the checkpoint. */
  readonly fork: boolean
  readonly upTo?: Position | undefined
}

/** Damage in the finished lines of a metrics.jsonl. A last line without a line feed results from a crash and is not counted as damage. */
export function logDamage(lines: readonly string[], extent: Extent): string | undefined {
  return atOnce(logDamageInPieces(lines, extent))
}

/** `logDamage` in short pieces of work, a line each. */
export function* logDamageInPieces(lines: readonly string[], { fork, upTo }: Extent): Pieces<string | undefined> {
  const problems: string[] = []
  let last: IterationReport | undefined
  for (const [index, line] of lines.entries()) {
    const number = index + 1
    const report = reportOf(line)
    yield
    if (!report) {
      // Lines after the checkpoint are cut off, so their damage does not matter.
      if (upTo === undefined || (last?.iteration ?? 0) < upTo.iteration) problems.push(`line ${number} cannot be read`)
      continue
    }
    if (upTo !== undefined && report.iteration > upTo.iteration) continue
    problems.push(...orderProblems(report, last, number, fork))
    if (last === undefined || report.iteration > last.iteration) last = report
  }
  if (upTo !== undefined) problems.push(...endProblems(last, upTo, fork))
  if (problems.length === 0) return undefined
  const more = problems.length - listed
  return [...problems.slice(0, listed), ...(more > 0 ? [`and ${more} more`] : [])].join("; ")
}

function orderProblems(report: IterationReport, last: IterationReport | undefined, line: number, fork: boolean) {
  const { iteration, update } = report
  const unit = update === undefined ? "iteration" : "update"
  if (last && iteration <= last.iteration)
    return [`line ${line} is of ${unit} ${iteration}, but an earlier line is of ${unit} ${last.iteration}`]
  const epoch = epochOf(report)
  if (epoch !== undefined) {
    const expected = last ? (epochOf(last) ?? 0) + 1 : fork ? epoch : 1
    return epoch === expected ? [] : [`line ${line} is of epoch ${epoch}, but epoch ${expected} is expected`]
  }
  // A run that starts with an evaluation has a first line of iteration 0. A fork of a fine-tuning run continues after its last step.
  if (last ? epochOf(last) !== undefined : fork || iteration === 0) return []
  const next = (last?.iteration ?? 0) + 1
  return iteration === next ? [] : [`${missing(next, iteration - 1)} before line ${line}`]
}

function endProblems(last: IterationReport | undefined, { iteration, epochs }: Position, fork: boolean): string[] {
  if (epochs !== undefined) {
    const reported = last ? (epochOf(last) ?? 0) : 0
    return reported >= epochs ? [] : [missing(reported + 1, epochs, "epoch")]
  }
  if (last === undefined) return fork || iteration === 0 ? [] : [missing(1, iteration)]
  return last.iteration === iteration || (fork && epochOf(last) !== undefined)
    ? []
    : [missing(last.iteration + 1, iteration)]
}

function epochOf({ metrics }: IterationReport): number | undefined {
  return metrics["sft/epoch"]
}

function missing(from: number, to: number, what = "iteration"): string {
  return from === to ? `${what} ${from} is missing` : `${what}s ${from} to ${to} are missing`
}
