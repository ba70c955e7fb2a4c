import { readFile } from "node:fs/promises"
import { replaceFile } from "../files/atomic-file.ts"
import { io } from "../files/io-error.ts"

/**
 * Cuts a metrics.jsonl back to its lines of iterations up to `iteration`: what came after the checkpoint will come again.
 * A line that a crash left unfinished goes too. Returns the length of the file in bytes.
 */
export async function cutBack(path: string, iteration: number): Promise<number> {
  const text = await io("read", path, readFile(path, "utf8"))
  const lines = text.split("\n").slice(0, -1) // what stands after the last line feed was never finished
  const kept = lines.filter((line) => (iterationOf(line) ?? Number.POSITIVE_INFINITY) <= iteration)
  const result = kept.map((line) => `${line}\n`).join("")
  if (result !== text) await replaceFile(path, result)
  return Buffer.byteLength(result)
}

function iterationOf(line: string): number | undefined {
  try {
    const { iteration } = JSON.parse(line)
    return typeof iteration === "number" ? iteration : undefined
  } catch {
    return undefined
  }
}
