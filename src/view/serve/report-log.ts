import { createHash } from "node:crypto"
import { type FileHandle, open } from "node:fs/promises"
import { io, ioError, isMissing } from "../../files/io-error.ts"
import { Pace } from "../../pace.ts"
import { reportOf } from "../../training/metrics-log.ts"
import type { IterationReport } from "../../training/options.ts"
import type { ReportPage } from "../data/source.ts"

// Where a reader of metrics.jsonl stands is a place in the file and what stands before it. The file is cut back where a run goes back
// to a checkpoint, and is another where a run begins anew; it may then have grown past the place again, but what stands before it
// differs, as reports tell the time. So nobody has to be remembered, and no more is read than is new.

/** Bytes before a place, at least, that tell whether the file is the one that was read; all of the last line is among them. */
const known = 16_384
/** Bytes that are read at once. */
const portion = 2 ** 20
const lineFeed = 10

/**
 * What metrics.jsonl says after `cursor`, which is one that was returned before; all of it without. A line that is not finished waits.
 * Where there is no file there are no reports.
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

/** The newest reports, as many as stand in the last part of the file: what it takes to say how far a run is. */
export async function readNewestReports(path: string): Promise<readonly IterationReport[]> {
  const handle = await opened(path)
  if (!handle) return []
  try {
    const { size } = await handle.stat()
    for (let length = 4 * known; ; length *= 4) {
      const from = Math.max(size - length, 0)
      // Of the first line only a part may be there.
      const bytes = await readAt(handle, from, size)
      const first = from === 0 ? 0 : bytes.indexOf(lineFeed) + 1
      const reports = reportsIn(bytes.subarray(first, bytes.lastIndexOf(lineFeed) + 1))
      if (reports.length > 0 || from === 0) return reports
    }
  } catch (cause) {
    throw ioError("read", path, cause)
  } finally {
    await handle.close()
  }
}

async function opened(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r")
  } catch (cause) {
    if (isMissing(cause)) return undefined
    return await io("open", path, Promise.reject(cause))
  }
}

/** A place in the file, and what stands before it as far as it counts. */
interface Place {
  readonly end: number
  readonly bytes: Buffer
}

/** What stands now before the place that a cursor names; undefined where there is no such place. */
async function readBefore(handle: FileHandle, cursor = ""): Promise<Place | undefined> {
  const [end, length] = cursor.split(".").map(Number) as [number, number?]
  if (!Number.isSafeInteger(end) || !Number.isSafeInteger(length)) return undefined
  if (length! < 0 || length! > end || end > (await handle.stat()).size) return undefined
  return { end, bytes: await readAt(handle, end - length!, end) }
}

async function readLines(handle: FileHandle, from: Place): Promise<Place & { reports: IterationReport[] }> {
  const reports: IterationReport[] = []
  const pace = new Pace()
  let [{ end, bytes: before }, unfinished] = [from, Buffer.alloc(0)]
  for (;;) {
    const start = end + unfinished.length
    const bytes = await readAt(handle, start, start + portion)
    if (bytes.length === 0) return { reports, end, bytes: before }
    const last = bytes.lastIndexOf(lineFeed) + 1
    if (last === 0) {
      unfinished = Buffer.concat([unfinished, bytes])
      continue
    }
    const lines = Buffer.concat([unfinished, bytes.subarray(0, last)])
    for (let at = 0; at < lines.length; ) {
      const next = lines.indexOf(lineFeed, at) + 1
      reports.push(...reportsIn(lines.subarray(at, next)))
      at = next
      if (pace.due()) await pace.rest()
    }
    end += lines.length
    const lastLine = lines.length - 1 - lines.lastIndexOf(lineFeed, -2)
    before = Buffer.concat([before, lines]).subarray(-Math.max(known, lastLine))
    unfinished = Buffer.from(bytes.subarray(last))
  }
}

function reportsIn(lines: Buffer): IterationReport[] {
  return lines
    .toString("utf8")
    .split("\n")
    .flatMap((line) => reportOf(line) ?? [])
    .filter(({ metrics }) => typeof metrics === "object" && metrics !== null)
}

/** As many bytes of the file as there are from `from` to `to`. */
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
