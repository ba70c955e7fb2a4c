import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { trainByteLevelTokenizer } from "../../src/tokenizer/train.ts"
import { writeTokenizer } from "../../src/tokenizer/write.ts"

export const corpus: readonly string[] = Array.from({ length: 8 }, () => [
  "Current Observation:\n# # _ O\n# P X _\nThe Observation shows a room.",
  "<think>I push the box left.</think><action>left</action>",
  "<think>I push the box right.</think><action>right</action>",
]).flat()

/** A folder that is removed when the test ends, with a tokenizer learned from these texts. */
export async function tokenizerFolder(texts: readonly string[] = corpus): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "gigpo-tokenizer-"))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  await writeTokenizer(directory, await trainByteLevelTokenizer(texts, { vocabularySize: 400 }))
  return directory
}

export async function open(directory: string): Promise<Tokenizer> {
  const tokenizer = await Tokenizer.open(directory, { timeoutMs: 2000 })
  onTestFinished(() => tokenizer.dispose())
  return tokenizer
}

// biome-ignore lint/suspicious/noExplicitAny: tests break these files in every way
export function edit(path: string, change: (json: any) => void): void {
  const json = JSON.parse(readFileSync(path, "utf8"))
  change(json)
  writeFileSync(path, JSON.stringify(json))
}
