import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { gzipSync } from "node:zlib"
import { parquetWriteBuffer } from "hyparquet-writer"
import { afterAll, beforeAll, expect, it } from "vitest"
import { readQuestions } from "../../../src/environment/search/questions.ts"
import { Random } from "../../../src/util/random.ts"

// Parquet files that claim more than they hold, or are broken anywhere. They are rejected by their name.

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-parquet-"))
})
afterAll(() => rm(folder, { recursive: true }))

async function written(name: string, bytes: Uint8Array): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, bytes)
  return path
}

const refusal = (path: string, message: RegExp) => ({
  code: "BAD_DATA",
  message: expect.stringMatching(new RegExp(`${path}.*${message.source}`)),
})
const answers = (count: number) => ({ name: "golden_answers", data: Array(count).fill("a"), type: "STRING" as const })

it("a page that expands hundreds of times is rejected before decompression", async () => {
  const question = { name: "question", data: ["?".repeat(40 * 2 ** 20)], type: "STRING" as const }
  const compressors = { GZIP: (bytes: Uint8Array) => gzipSync(bytes) }
  const file = parquetWriteBuffer({ columnData: [question, answers(1)], codec: "GZIP", compressors, statistics: false })
  const path = await written("bomb.parquet", new Uint8Array(file))
  expect(file.byteLength).toBeLessThan(100_000)
  const before = process.resourceUsage().maxRSS
  await expect(readQuestions(path)).rejects.toMatchObject(refusal(path, /it claims more than its size allows/))
  expect((process.resourceUsage().maxRSS - before) / 1024).toBeLessThan(100)
})

it("a million rows in a few bytes are rejected", async () => {
  const data = Array(1_000_000).fill("who?")
  const file = parquetWriteBuffer({
    columnData: [{ name: "question", data, type: "STRING" }, answers(1_000_000)],
    rowGroupSize: 1_000_000,
  })
  const path = await written("rows.parquet", new Uint8Array(file))
  expect(file.byteLength).toBeLessThan(15_000)
  await expect(readQuestions(path)).rejects.toMatchObject(refusal(path, /it claims more than its size allows/))
})

/** A hundred rows of the text "a", but its run of dictionary indices claims a billion values. */
const endless = [
  "UEFSMRUEFQoVCkwVAhUAAAABAAAAYRUAFQ4VDiwVyAEVEBUGFQYAAAH+////BwAVAhksSARyb290FQIAFQwlABgIcXVlc3Rpb24lAAAWyAEZHBkcJggcFQwZ",
  "FRAZGAhxdWVzdGlvbhUAFsgBFlYWViYsJggAABZWFsgBAABOAAAAUEFSMQ==",
].join("")

it("a run of a billion values in six bytes ends only the reading process", async () => {
  const path = await written("endless.parquet", Buffer.from(endless, "base64"))
  const before = process.resourceUsage().maxRSS
  await expect(readQuestions(path)).rejects.toMatchObject(
    refusal(path, /takes more memory or time than its size allows/),
  )
  expect((process.resourceUsage().maxRSS - before) / 1024).toBeLessThan(100)
})

it("thousands of ordinary rows are read", async () => {
  const data = Array.from({ length: 5000 }, (_, i) => `Which one is number ${i}?`)
  const file = parquetWriteBuffer({ columnData: [{ name: "question", data }, answers(5000)], rowGroupSize: 1000 })
  const read = await readQuestions(await written("ordinary.parquet", new Uint8Array(file)))
  expect(read).toHaveLength(5000)
  expect(read[4999]).toEqual({ id: "4999", question: data[4999], answers: ["a"] })
})

it("modified bytes are rejected with the file's name, or read", { timeout: 120_000 }, async () => {
  const whole = await readFile(join(import.meta.dirname, "search-r1.parquet"))
  const random = new Random(1)
  for (let round = 0; round < 12; round++) {
    const bytes = Buffer.from(whole)
    for (let change = 0; change < 3; change++) bytes[random.below(bytes.length)] = [0, 0xff, 0x7f][random.below(3)]!
    const path = await written(`mutated-${round}.parquet`, bytes)
    await readQuestions(path).catch((error) => expect(error).toMatchObject(refusal(path, /./)))
  }
})

it("two broken columns cause one error", async () => {
  const whole = await readFile(join(import.meta.dirname, "search-r1.parquet"))
  whole.fill(0xff, 4, 400)
  for (let round = 0; round < 3; round++) {
    const path = await written("columns.parquet", whole)
    await expect(readQuestions(path)).rejects.toMatchObject(refusal(path, /cannot be read as Parquet/))
  }
})

it("does not wait for something other than a file", async () => {
  const path = join(folder, "pipe.parquet")
  await promisify(execFile)("mkfifo", [path])
  await expect(readQuestions(path)).rejects.toMatchObject(refusal(path, /it is not a file/))
})

it("an abort stops the reading", async () => {
  const path = join(import.meta.dirname, "search-r1.parquet")
  const stop = new AbortController()
  const reading = readQuestions(path, stop.signal)
  stop.abort(new Error("enough"))
  await expect(reading).rejects.toThrow("enough")
})
