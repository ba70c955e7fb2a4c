import { createHash } from "node:crypto"
import type { FileHandle } from "node:fs/promises"
import { io, ioError, isMissing } from "../../files/io-error.ts"
import { LineCutter } from "../../files/lines.ts"
import { openRegular } from "../../files/regular-file.ts"
import { longestReport, reportOf } from "../../runs/metrics-log.ts"
import type { IterationReport } from "../../runs/report.ts"
import { Pace } from "../../util/pace.ts"
import type { ReportPage } from "../data/source.ts"

// A cursor of metrics.jsonl contains a position and a digest of the bytes before it. The file is truncated when a run returns to a checkpoint,
// and replaced when a run restarts. It may have grown past the position since then, but the bytes before it differ, because reports contain
// the time. So the server keeps no state of readers, and reads only new bytes.

/** Minimum number of bytes before a position that identify the file; the last line is always included. */
const known = 16_384
/** Bytes per read. */
const portion = 2 ** 20
const lineFeed = 10

/**
 * Reports of metrics.jsonl after `cursor`, a cursor that was returned before; all reports without a cursor. Incomplete lines are left for
 * later. A missing file contains no reports.
 */
export async function readReportsSince(
  path: string,
  cursor?: string,
): Promise<Pick<ReportPage, "cursor" | "reset" | "reports">> {
  const handle = await opened(path)
  const nothing = cursorAt(0, Buffer.alloc(0))
  if (!handle) return { cursor: nothing, reset: cursor !== nothing, reports: [] }
  try {
    const before = await readBefore(handle, cursor)
    const goesOn = before !== undefined && cursor === cursorAt(before.end, before.bytes)
    const read = await readLines(handle, goesOn ? before : { end: 0, bytes: Buffer.alloc(0) })
    return { cursor: cursorAt(read.end, read.bytes), reset: !goesOn, reports: read.reports }
  } catch (cause) {
    throw ioError("read", path, cause)
  } finally {
    await handle.close()
  }
}

/** Newest reports, from the last part of the file, for the progress of a run. */
export async function readNewestReports(path: string): Promise<readonly IterationReport[]> {
  const handle = await opened(path)
  if (!handle) return []
  try {
    const { size } = await handle.stat()
    for (let length = 4 * known; ; length *= 4) {
      const from = Math.max(size - Math.min(length, 4 * longestReport), 0)
      // The first line may be incomplete.
      const bytes = await readAt(handle, from, size)
      const first = from === 0 ? 0 : bytes.indexOf(lineFeed) + 1
      const reports = reportsIn(bytes.subarray(first, bytes.lastIndexOf(lineFeed) + 1))
      if (reports.length > 0 || from === 0 || length > 4 * longestReport) return reports
    }
  } catch (cause) {
    throw ioError("read", path, cause)
  } finally {
    await handle.close()
  }
}

async function opened(path: string): Promise<FileHandle | undefined> {
  try {
    return await openRegular(path)
  } catch (cause) {
    if (isMissing(cause)) return undefined
    return await io("open", path, Promise.reject(cause))
  }
}

/** Position in the file, with the identifying bytes before it. */
interface Place {
  readonly end: number
  readonly bytes: Buffer
}

/** Reads the bytes before the position of a cursor; undefined if the position does not exist. */
async function readBefore(handle: FileHandle, cursor = ""): Promise<Place | undefined> {
  const [end, length] = cursor.split(".").map(Number) as [number, number?]
  if (!Number.isSafeInteger(end) || !Number.isSafeInteger(length)) return undefined
  if (length! < 0 || length! > Math.min(end, longestReport) || end > (await handle.stat()).size) return undefined
  return { end, bytes: await readAt(handle, end - length!, end) }
}

async function readLines(handle: FileHandle, from: Place): Promise<Place & { reports: IterationReport[] }> {
  const reports: IterationReport[] = []
  const pace = new Pace()
  const cutter = new LineCutter(longestReport)
  let { end, bytes: before } = from
  for (let at = end; ; ) {
    const bytes = await readAt(handle, at, at + portion)
    if (bytes.length === 0) return { reports, end, bytes: before }
    const begun = at - end
    at += bytes.length
    for (const line of cutter.push(bytes)) {
      const report = line && reportOf(line.toString("utf8"))
      if (report) reports.push(report)
      if (pace.due()) await pace.rest()
    }
    const finished = bytes.lastIndexOf(lineFeed) + 1
    if (finished === 0) continue
    end = at - bytes.length + finished
    // The whole last line, unless it is too long for a report.
    const line = finished - 1 - bytes.lastIndexOf(lineFeed, finished - 2)
    const length = Math.max(known, line > finished - 1 ? Math.min(begun + finished, longestReport) : line)
    before = await readAt(handle, Math.max(end - length, 0), end)
  }
}

function reportsIn(lines: Buffer): IterationReport[] {
  return lines
    .toString("utf8")
    .split("\n")
    .flatMap((line) => reportOf(line) ?? [])
    .filter(({ metrics }) => typeof metrics === "object" && metrics !== null)
}

/** Bytes of the file from `from` to `to`, or to its end. */
async function readAt(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.alloc(to - from)
  let length = 0
  while (length < bytes.length) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, from + length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.subarray(0, length)
}

function cursorAt(place: number, before: Buffer): string {
  return `${place}.${before.length}.${createHash("sha256").update(before).digest("hex").slice(0, 16)}`
}
