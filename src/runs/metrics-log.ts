import { lstat } from "node:fs/promises"
import { replaceFile } from "../files/atomic-file.ts"
import { io, ioError, isMissing, isSystemError } from "../files/io-error.ts"
import { finishedLines } from "../files/lines.ts"
import { readRegular } from "../files/regular-file.ts"
import { GigpoError } from "../util/errors.ts"
import { isReport } from "./check-report.ts"
import type { IterationReport } from "./report.ts"

/** Characters of a line. The reports of training have some thousands; what is longer was not written by it. */
export const longestReport = 2 ** 22

/**
 * Cuts a metrics.jsonl back to its lines of iterations up to `iteration`: what came after the checkpoint will come again.
 * A line that a crash left unfinished goes too. Returns the length of the file in bytes.
 */
export async function cutBack(path: string, iteration: number): Promise<number> {
  const text = await io("read", path, readRegular(path))
  const kept = upTo(text, iteration)
  // The file is going to be written in place: one that has another name elsewhere would change there, too.
  if (kept !== text || (await io("look at", path, lstat(path))).nlink > 1) await replaceFile(path, kept)
  return Buffer.byteLength(kept)
}

/** The lines of a metrics.jsonl up to `iteration`; none where there is no such file. */
export async function linesUpTo(path: string, iteration: number): Promise<string> {
  const kept: string[] = []
  for await (const line of loggedLines(path)) if (isUpTo(line, iteration)) kept.push(line)
  return joined(kept)
}

/** Puts a report in place of the last line: after a crash there is the old line or the new one. Returns the length of the file in bytes. */
export async function replaceLast(path: string, report: IterationReport): Promise<number> {
  const lines = linesOf(await io("read", path, readRegular(path)))
  const text = joined([...lines.slice(0, -1), JSON.stringify(report)])
  await replaceFile(path, text)
  return Buffer.byteLength(text)
}

/** What the lines of a metrics.jsonl say; none where there is no such file. */
export async function readReports(path: string): Promise<IterationReport[]> {
  const reports: IterationReport[] = []
  for await (const line of loggedLines(path)) {
    const report = reportOf(line)
    if (report) reports.push(report)
  }
  return reports
}

/** The finished lines of a metrics.jsonl, one that is too long as an empty one; none where there is no such file. */
export async function* loggedLines(path: string): AsyncGenerator<string> {
  try {
    for await (const line of finishedLines(path, longestReport)) yield line ?? ""
  } catch (cause) {
    if (isMissing(cause) || (isSystemError(cause) && cause.code === "EISDIR")) return
    throw GigpoError.is(cause) ? cause : ioError("read", path, cause)
  }
}

function upTo(text: string, iteration: number): string {
  return joined(linesOf(text).filter((line) => isUpTo(line, iteration)))
}

function isUpTo(line: string, iteration: number): boolean {
  return (reportOf(line)?.iteration ?? Number.POSITIVE_INFINITY) <= iteration
}

/** What stands after the last line feed was never finished. */
function linesOf(text: string): string[] {
  return text.split("\n").slice(0, -1)
}

function joined(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("")
}

/** What a line of a metrics.jsonl says; undefined where it is no report. */
export function reportOf(line: string): IterationReport | undefined {
  if (line.length > longestReport) return undefined
  try {
    const report: unknown = JSON.parse(line)
    return isReport(report) ? report : undefined
  } catch {
    return undefined
  }
}
