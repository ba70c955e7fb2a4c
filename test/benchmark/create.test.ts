import { execFileSync } from "node:child_process"
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openBenchmark } from "../../src/benchmark/benchmark.ts"
import { type CreateBenchmarkOptions, createBenchmark } from "../../src/benchmark/create.ts"
import { describeBenchmark } from "../../src/benchmark/find.ts"

let folder = ""
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-pin-"))
})
afterAll(() => rm(folder, { recursive: true }))

const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("")
const questions = Array.from({ length: 9 }, (_, n) => ({
  ...{
    id: `q${n}`,
    question: `Who built bridge ${n}?`,
    golden_answers: [`Ada ${n}`],
    data_source: n % 2 ? "nq" : "hotpotqa",
  },
}))
const passages = questions.map((_, n) => ({
  id: `${n}`,
  contents: `"Bridge ${n}"\nBridge ${n} was built by Ada ${n}.`,
}))

/** A set of questions with its corpus, in a folder of its own. */
async function write(name: string, asked: readonly object[] = questions, corpus: readonly object[] = passages) {
  const place = join(folder, name)
  await mkdir(place)
  const files = {
    questions: join(place, "train.jsonl"),
    testQuestions: join(place, "test.jsonl"),
    corpus: join(place, "c.jsonl"),
  }
  await writeFile(files.questions, lines([{ question: "Why?", golden_answers: ["so"] }]))
  await writeFile(files.testQuestions, lines(asked))
  await writeFile(files.corpus, lines(corpus))
  return files
}

describe("a benchmark of one's own", () => {
  const path = () => join(folder, "bridges.benchmark.json")
  const pin = (changes: Partial<CreateBenchmarkOptions> = {}) =>
    ({ environment: "search", tasks: 8, ...changes }) as CreateBenchmarkOptions

  it("says which tasks they are, and none of the data nor where it lies", async () => {
    const options = { ...(await write("first")), topk: 2, rules: false, history: 1 }
    const made = await createBenchmark(path(), pin({ options }))
    expect(made).toMatchObject({ name: "bridges@1", options: { topk: 2 }, tasks: { count: 8 } })
    expect(made.options).toEqual({ topk: 2 })
    expect(made.places).toEqual(["questions", "testQuestions", "corpus"])
    const { gigpo: _, benchmark: __, ...written } = JSON.parse(await readFile(path(), "utf8"))
    expect(await describeBenchmark(path())).toEqual(written)
    expect(written).toEqual(made)
    const text = await readFile(path(), "utf8")
    for (const secret of ["bridge", "Ada", folder]) expect(text.replaceAll(/bridges@1/g, "")).not.toContain(secret)
  })

  it("plays these tasks where the same data lies elsewhere, however the agent is spoken to", async () => {
    const benchmark = await openBenchmark(path(), { ...(await write("second")), topk: 5, thinking: "off" })
    const { keys, digests } = await describeBenchmark(path())
    expect(benchmark.tasks.map(({ key }) => key)).toEqual(keys)
    expect(benchmark.tasks.map(({ kind }) => kind).slice(0, 2)).toEqual(["hotpotqa", "nq"])
    expect(benchmark.tasks.map(({ task }) => (task as { id: string }).id)).toEqual(
      questions.slice(0, 8).map(({ id }) => id),
    )
    expect(benchmark.digests.environment).toBe(digests.environment)
    expect(benchmark.replaced).toEqual(["topk"])
  })

  it.each<[string, RegExp, readonly object[], readonly object[]]>([
    ["fewer questions", /there are 7 tasks instead of 8/, questions.slice(2), passages],
    [
      "another answer",
      /task 3 is the first that differs \(.{16} instead of .{16}\)/,
      questions.with(3, { ...questions[3]!, golden_answers: ["Eve"] }),
      passages,
    ],
    ["another order", /task 0 is the first that differs/, questions.toReversed(), passages],
    [
      "another corpus",
      /the tasks are the same, but the environment responds differently/,
      questions,
      passages.map((passage) => ({ ...passage, contents: `${passage.contents} Indeed.` })),
    ],
  ])("rejects %s", async (name, message, asked, corpus) => {
    const options = await write(name, asked, corpus)
    await expect(openBenchmark(path(), options)).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringMatching(message),
    })
  })

  it("needs the options that say where its data is", async () => {
    await expect(openBenchmark(path())).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining("questions"),
    })
  })

  it.each<[string, string, Partial<CreateBenchmarkOptions> | object, string, RegExp]>([
    ["what is there", "bridges.benchmark.json", {}, "FILE_EXISTS", /--overwrite/],
    ["another kind of file", "bridges.txt", {}, "BAD_ARGUMENT", /must end in \.json/],
    ["a folder that is not there", "none/a.json", {}, "BAD_ARGUMENT", /no folder/],
    ["a name without a version", "a.json", { name: "nq" }, "BAD_ARGUMENT", /with its version, for example nq@1/],
    ["a name that a terminal obeys", "a.json", { name: "\u001b[31m@1" }, "BAD_ARGUMENT", /with its version/],
    ["a name that ships", "a.json", { name: "search/world@1" }, "BAD_ARGUMENT", /use another name/],
    ["no tasks", "a.json", { tasks: 0 }, "BAD_ARGUMENT", /integer from 1/],
    [
      "more tasks than there are",
      "a.json",
      { environment: "search", options: { entities: 60 }, tasks: 400 },
      "BAD_CONFIG",
      /has 109 held-out tasks, not 400/,
    ],
    ["tasks without an environment", "a.json", { environment: "tasks", options: {} }, "BAD_CONFIG", /tasks/],
    ["code", "a.json", { environment: "webshop", options: { nouns: () => [] } }, "BAD_CONFIG", /option nouns/],
    [
      "an option that there is not",
      "a.json",
      { environment: "sokoban", options: { boxs: 1 } },
      "BAD_CONFIG",
      /did you mean boxes/,
    ],
  ])("is not made of %s, and nothing is written", async (_, file, changes, code, message) => {
    const before = await readFile(path(), "utf8")
    await expect(createBenchmark(join(folder, file), pin(changes))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    })
    expect(await readFile(path(), "utf8")).toBe(before)
    if (file === "a.json") await expect(readFile(join(folder, file))).rejects.toMatchObject({ code: "ENOENT" })
  })

  it.each([
    ["is no JSON", (text: string) => text.slice(1)],
    ["is of another layout", (text: string) => text.replace('"benchmark": 1', '"benchmark": 2')],
    ["names no environment", (text: string) => text.replace('"search"', '"surch"')],
    ["names an escape", (text: string) => text.replace("bridges@1", "\\u001b[31m@1")],
    ["names a path of its own", (text: string) => text.replace('"corpus"', '"passwd"')],
    ["names a server of its own", (text: string) => text.replace('"topk": 2', '"retriever": "http://127.0.0.1:9"')],
    ["says how the agent is spoken to", (text: string) => text.replace('"topk": 2', '"rules": false')],
    ["is a list", () => "[]"],
    ["claims more tasks than it has keys for", (text: string) => text.replace(/"count": \d+/, '"count": 999999999')],
    [
      "claims no tasks",
      (text: string) => text.replace(/"count": \d+/, '"count": 0').replace(/"keys": \[[^\]]*\]/, '"keys": []'),
    ],
    ["asks for all tasks there are", (text: string) => text.replace(/"count": \d+/, '$&, "sorted": true')],
    ["has keys that are none", (text: string) => text.replace(/"keys": \[\s*"[0-9a-f]{16}"/, '"keys": ["x"')],
    ["is nested deep", (text: string) => text.replace('"topk": 2', `"topk": ${"[".repeat(5000)}${"]".repeat(5000)}`)],
  ])("rejects a file that %s", async (_, change) => {
    const other = join(folder, "other.benchmark.json")
    await writeFile(other, change(await readFile(path(), "utf8")))
    await expect(openBenchmark(other)).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringContaining(other),
    })
  })

  it.skipIf(process.platform === "win32")("does not wait for a pipe in place of a file", async () => {
    const pipe = join(folder, "pipe.json")
    execFileSync("mkfifo", [pipe])
    await expect(openBenchmark(pipe)).rejects.toMatchObject({ code: "UNSAFE_PATH" })
  })

  it("pins databases wherever they lie", async () => {
    const at = async (name: string) => {
      const databases = join(folder, name)
      await mkdir(databases)
      await writeFile(join(databases, "shop.sqlite"), "")
      const asked = [
        { db_id: "shop", question: "How many?", query: "SELECT 1" },
        { db_id: "shop", question: "Two?", query: "SELECT 2" },
      ]
      await writeFile(join(databases, "test.jsonl"), lines(asked))
      await writeFile(join(databases, "train.jsonl"), lines(asked.slice(1)))
      return { databases, questions: join(databases, "train.jsonl"), testQuestions: join(databases, "test.jsonl") }
    }
    const file = join(folder, "spider.json")
    const { keys } = await createBenchmark(file, { environment: "sql", options: await at("here"), tasks: 2 })
    const benchmark = await openBenchmark(file, await at("there"))
    expect(benchmark.tasks.map(({ key }) => key)).toEqual(keys)
  })
})
