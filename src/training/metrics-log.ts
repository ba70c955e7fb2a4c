import { readFile } from "node:fs/promises"
import { replaceFile } from "../files/atomic-file.ts"
import { io } from "../files/io-error.ts"
import type { IterationReport } from "./options.ts"

/**
 * Cuts a metrics.jsonl back to its lines of iterations up to `iteration`: what came after the checkpoint will come again.
 * A line that a crash left unfinished goes too. Returns the length of the file in bytes.
 */
export async function cutBack(path: string, iteration: number): Promise<number> {
  const text = await io("read", path, readFile(path, "utf8"))
  const kept = upTo(text, iteration)
  if (kept !== text) await replaceFile(path, kept)
  return Buffer.byteLength(kept)
}

/** The lines of a metrics.jsonl up to `iteration`; none where there is no such file. */
export async function linesUpTo(path: string, iteration: number): Promise<string> {
  return upTo(await readFile(path, "utf8").catch(() => ""), iteration)
}

/** Puts a report in place of the last line: after a crash there is the old line or the new one. Returns the length of the file in bytes. */
export async function replaceLast(path: string, report: IterationReport): Promise<number> {
  const lines = linesOf(await io("read", path, readFile(path, "utf8")))
  const text = joined([...lines.slice(0, -1), JSON.stringify(report)])
  await replaceFile(path, text)
  return Buffer.byteLength(text)
}

/** What the lines of a metrics.jsonl say; none where there is no such file. */
export async function readReports(path: string): Promise<IterationReport[]> {
  const text = await readFile(path, "utf8").catch(() => "")
  return linesOf(text).flatMap((line) => reportOf(line) ?? [])
}

function upTo(text: string, iteration: number): string {
  return joined(linesOf(text).filter((line) => (reportOf(line)?.iteration ?? Number.POSITIVE_INFINITY) <= iteration))
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
  try {
    const report = JSON.parse(line)
    return typeof report?.iteration === "number" ? report : undefined
  } catch {
    return undefined
  }
}
