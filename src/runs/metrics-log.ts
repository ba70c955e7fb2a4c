import { lstat } from "node:fs/promises"
import { replaceFile } from "../files/atomic-file.ts"
import { io, ioError, isMissing, isSystemError } from "../files/io-error.ts"
import { finishedLines } from "../files/lines.ts"
import { readRegular } from "../files/regular-file.ts"
import { isObject } from "../options/read.ts"
import { GigpoError } from "../util/errors.ts"
import { isReport } from "./check-report.ts"
import type { IterationReport } from "./report.ts"

/** Maximum number of characters of a line. Reports of training have some thousands. */
export const longestReport = 2 ** 22

/**
 * Truncates a metrics.jsonl to the lines of iterations up to `iteration`: later iterations are computed again. An unfinished line of a crash is
 * removed, too. Returns the length of the file in bytes.
 */
export async function cutBack(path: string, iteration: number): Promise<number> {
  const text = await io("read", path, readRegular(path))
  const kept = upTo(text, iteration)
  // The file will be written in place. With hard links, the file would also change under its other names, so it is replaced by a copy.
  if (kept !== text || (await io("look at", path, lstat(path))).nlink > 1) await replaceFile(path, kept)
  return Buffer.byteLength(kept)
}

/** Returns the lines of a metrics.jsonl up to `iteration`. Empty if there is no such file. */
export async function linesUpTo(path: string, iteration: number): Promise<string> {
  const kept: string[] = []
  for await (const line of loggedLines(path)) if (isUpTo(line, iteration)) kept.push(line)
  return joined(kept)
}

/** Replaces the last line by a report, atomically. Returns the length of the file in bytes. */
export async function replaceLast(path: string, report: IterationReport): Promise<number> {
  const lines = linesOf(await io("read", path, readRegular(path)))
  const text = joined([...lines.slice(0, -1), JSON.stringify(report)])
  await replaceFile(path, text)
  return Buffer.byteLength(text)
}

/** Reads the reports of a metrics.jsonl. Empty if there is no such file. */
export async function readReports(path: string): Promise<IterationReport[]> {
  const reports: IterationReport[] = []
  for await (const line of loggedLines(path)) {
    const report = reportOf(line)
    if (report) reports.push(report)
  }
  return reports
}

/** Yields the finished lines of a metrics.jsonl, an empty line for one that is too long. Empty if there is no such file. */
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

/** Lines that end with a line feed. The rest of the text is an unfinished line. */
function linesOf(text: string): string[] {
  return text.split("\n").slice(0, -1)
}

function joined(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join("")
}

/** Parses a line of a metrics.jsonl, with the update of SFT as its iteration; undefined for a line that is not a report. */
export function reportOf(line: string): IterationReport | undefined {
  if (line.length > longestReport) return undefined
  // An exception takes microseconds, and a damaged file may have a line for each byte.
  const text = line.trim()
  if (text[0] !== "{" || text.at(-1) !== "}") return undefined
  try {
    const read: unknown = JSON.parse(line)
    const report = isObject(read) && "update" in read ? { ...read, iteration: read.update } : read
    return isReport(report) ? report : undefined
  } catch {
    return undefined
  }
}
