import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import { readJsonLines } from "../../../src/environment/json-lines.ts"
import { openCorpus } from "../../../src/environment/search/corpus.ts"
import { readQuestions } from "../../../src/environment/search/questions.ts"
import { holdOut, shuffledForever } from "../../../src/environment/splits.ts"
import { Random } from "../../../src/util/random.ts"

const folder = mkdtempSync(join(tmpdir(), "gigpo-search-"))
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}

const fixture = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const { signal } = new AbortController()

describe("JSON Lines", () => {
  it("are read with their positions, for any chunks, line ends and byte order marks", async () => {
    const long = "x".repeat(700_000)
    const path = write("lines.jsonl", `\ufeff{"a":1}\r\n\n  \n{"b":"é"}\n"${long}"\n[1]`)
    const lines = []
    for await (const line of readJsonLines(path)) lines.push(line)
    expect(lines.map(({ number, value }) => [number, value])).toEqual([
      [1, { a: 1 }],
      [4, { b: "é" }],
      [5, long],
      [6, [1]],
    ])
    expect(lines.map(({ start }) => start)).toEqual([0, 16, 27, 700_030])
    expect(lines.map(({ length }) => length)).toEqual([11, 10, 700_002, 3])
  })

  it("name a broken line", async () => {
    const path = write("broken.jsonl", '{"a":1}\n\n{"a":\n{}')
    const read = async () => {
      for await (const _ of readJsonLines(path)) {
      }
    }
    await expect(read()).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringContaining("line 3 is not JSON"),
    })
  })
})

describe("question files", () => {
  const velan = { question: "Who is the mayor of Velan Bay?", answers: ["Mara Velan", "Mara  V."] }

  it.each([
    [
      '{"id":"t","question":" Q? ","golden_answers":["a","b"],"metadata":{}}',
      { id: "t", question: "Q?", answers: ["a", "b"] },
    ],
    ['{"question":"Q?","golden_answers":"a"}', { id: "0", question: "Q?", answers: ["a"] }],
    [
      '{"question":"Q?","data_source":"nq","reward_model":{"style":"rule","ground_truth":{"target":["a"]}}}',
      { id: "0", question: "Q?", answers: ["a"], source: "nq" },
    ],
    [
      '{"id":7,"env_kwargs":{"question":"Q?","ground_truth":{"target":["a"]},"data_source":"hotpotqa"}}',
      { id: "7", question: "Q?", answers: ["a"], source: "hotpotqa" },
    ],
  ])("in JSON Lines: %s", async (line, task) => {
    expect(await readQuestions(write("questions.jsonl", line))).toEqual([task])
  })

  it.each([
    ["search-r1.parquet", { ...velan, id: "train_0", source: "world" }],
    ["flashrag.parquet", { ...velan, id: "train_0" }],
    ["targets.parquet", { ...velan, id: "0", source: "world" }],
  ])("in Parquet: %s", async (name, first) => {
    const questions = await readQuestions(fixture(name))
    expect(questions[0]).toEqual(first)
    expect(questions).toHaveLength(3)
    expect(questions[2]).toMatchObject({ question: "Wie heißt die Brücke?", answers: ["Grüne Brücke"] })
  })

  it.each([
    ["missing.jsonl", undefined, "BAD_DATA", /Cannot read .*missing\.jsonl/],
    ["missing.parquet", undefined, "BAD_DATA", /Cannot read .*missing\.parquet/],
    ["empty.jsonl", "\n\n", "BAD_DATA", /has no questions/],
    [
      "no-answer.jsonl",
      '{"question":"a","golden_answers":["b"]}\n{"question":"a","golden_answers":[]}',
      "BAD_DATA",
      /line 2 must have its answers/,
    ],
    [
      "no-question.jsonl",
      '{"question":" ","golden_answers":["b"]}',
      "BAD_DATA",
      /line 1 must have a string "question"/,
    ],
    ["number.jsonl", "7", "BAD_DATA", /line 1 must have a string/],
    ["empty.parquet", "", "BAD_DATA", /cannot be read as Parquet/],
    ["text.parquet", "this is no parquet file, PAR0", "BAD_DATA", /cannot be read as Parquet/],
  ])("are rejected: %s", async (name, content, code, message) => {
    const path = content === undefined ? join(folder, name) : write(name, content)
    await expect(readQuestions(path)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it("are rejected if Parquet data is corrupt", async () => {
    const { readFile } = await import("node:fs/promises")
    const bytes = await readFile(fixture("search-r1.parquet"))
    bytes.fill(0xff, 4, 400)
    const path = write("corrupt.parquet", bytes)
    await expect(readQuestions(path)).rejects.toMatchObject({ code: "BAD_DATA" })
    await expect(readQuestions(write("cut.parquet", bytes.subarray(0, 900)))).rejects.toMatchObject({
      code: "BAD_DATA",
    })
  })

  it("are split without common questions, about one in ten for the test", () => {
    const questions = Array.from({ length: 4000 }, (_, i) => ({
      id: String(i),
      question: `Question ${i % 2000}?`,
      answers: ["a"],
    }))
    const { train, test } = holdOut(questions, ({ question }) => question.toLowerCase())
    expect(train.length + test.length).toBe(4000)
    expect(test.length).toBeGreaterThan(300)
    expect(test.length).toBeLessThan(500)
    const asked = new Set(train.map(({ question }) => question))
    expect(test.filter(({ question }) => asked.has(question))).toEqual([])
  })

  it("are repeated in another order in each epoch", () => {
    const questions = ["a", "b", "c", "d", "e", "f", "g"].map((id) => ({ id, question: id, answers: [id] }))
    const source = shuffledForever(questions, new Random(3))
    const rounds = Array.from({ length: 3 }, () => Array.from({ length: 7 }, () => source.next().value!.id).join(""))
    for (const round of rounds) expect([...round].sort().join("")).toBe("abcdefg")
    expect(new Set([...rounds, "abcdefg"]).size).toBe(4)
    expect(shuffledForever([], new Random(1)).next().done).toBe(true)
  })
})

describe("openCorpus", () => {
  const lines = [
    { id: "7", contents: '"Velan Bay"\nA town on the Ordo Beck.' },
    { id: 8, title: "Ordo Beck", text: "Ordo rises – très long." },
    { id: "9", contents: "Nothing of note" },
  ]

  it("finds passages and reads them from the file", async () => {
    const path = write("corpus.jsonl", `\ufeff${lines.map((line) => JSON.stringify(line)).join("\r\n\r\n")}`)
    const corpus = await openCorpus(path)
    expect(corpus.size).toBe(3)
    const hits = await corpus.retrieve("ordo", 5, signal)
    expect(hits.map(({ id, contents }) => ({ id, contents }))).toEqual([
      { id: "8", contents: '"Ordo Beck"\nOrdo rises – très long.' },
      { id: "7", contents: '"Velan Bay"\nA town on the Ordo Beck.' },
    ])
    expect(hits[0]!.score).toBeGreaterThan(hits[1]!.score)
    expect(await corpus.retrieve("town", 1, signal)).toHaveLength(1)
    expect(await corpus.retrieve("xyzzy", 5, signal)).toEqual([])
    await expect(corpus.retrieve("town", 1, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough")
  })

  it("assigns ids to lines without one", async () => {
    const corpus = await openCorpus(write("no-ids.jsonl", '{"contents":"one"}\n{"contents":"two"}'))
    expect((await corpus.retrieve("two", 1, signal))[0]!.id).toBe("1")
  })

  it.each([
    ["missing.jsonl", undefined, "BAD_DATA", /Cannot read/],
    ["empty.jsonl", "", "BAD_DATA", /has no passages/],
    ["broken.jsonl", '{"id":"1","contents":"a"}\n{"id":"2","contents":"b"', "BAD_DATA", /line 2 is not JSON/],
    ["wrong.jsonl", '{"id":"1","text":"a"}', "BAD_DATA", /line 1 must be an object with/],
    ["null.jsonl", "null", "BAD_DATA", /line 1 must be an object with/],
  ])("rejects %s", async (name, content, code, message) => {
    const path = content === undefined ? join(folder, "nowhere", name) : write(name, content)
    await expect(openCorpus(path)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it("rejects a folder, and a file that was changed after it was read", async () => {
    await expect(openCorpus(folder)).rejects.toMatchObject({ code: "BAD_DATA" })
    const path = write("changing.jsonl", '{"id":"1","contents":"velan bay"}\n{"id":"2","contents":"ordo"}')
    const corpus = await openCorpus(path)
    writeFileSync(path, "x".repeat(100))
    await expect(corpus.retrieve("ordo", 1, signal)).rejects.toMatchObject({
      code: "IO",
      message: /do not change the file while the corpus is open/,
    })
    rmSync(path)
    await expect(corpus.retrieve("ordo", 1, signal)).rejects.toMatchObject({ code: "IO" })
  })

  it("stops when the signal is aborted", async () => {
    const path = write("many.jsonl", '{"contents":"over and over again"}\n'.repeat(50_000))
    const controller = new AbortController()
    const opening = openCorpus(path, {
      signal: controller.signal,
      onProgress: () => controller.abort(new Error("enough")),
    })
    await expect(opening).rejects.toThrow("enough")
  })
})
