import { readFile } from "node:fs/promises"
import { replaceFile } from "../files/atomic-file.ts"
import { io } from "../files/io-error.ts"

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

function upTo(text: string, iteration: number): string {
  const lines = text.split("\n").slice(0, -1) // what stands after the last line feed was never finished
  const kept = lines.filter((line) => (iterationOf(line) ?? Number.POSITIVE_INFINITY) <= iteration)
  return kept.map((line) => `${line}\n`).join("")
}

function iterationOf(line: string): number | undefined {
  try {
    const { iteration } = JSON.parse(line)
    return typeof iteration === "number" ? iteration : undefined
  } catch {
    return undefined
  }
}
