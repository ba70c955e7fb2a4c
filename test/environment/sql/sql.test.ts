import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import type { Environment } from "../../../src/environment/environment.ts"
import { type SqlOptions, type SqlTask, sql } from "../../../src/environment/sql/sql.ts"
import { questionKinds } from "../../../src/environment/sql/world/questions.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { takeTasks } from "../../../src/rollout/tasks.ts"
import { Random } from "../../../src/util/random.ts"

interface Writable {
  exec(script: string): void
  close(): void
}
/** Node's own SQLite where it has it; better-sqlite3 brings no types. */
const own = process.getBuiltinModule("node:sqlite" as "fs") as unknown as
  | { DatabaseSync: new (file: string) => Writable }
  | undefined
const Database: new (file: string) => Writable = own?.DatabaseSync ?? createRequire(import.meta.url)("better-sqlite3")

const folder = mkdtempSync(join(tmpdir(), "gigpo-sql-environment-"))
afterAll(() => rmSync(folder, { recursive: true }))

const task: SqlTask = {
  id: "one",
  database: { script: "CREATE TABLE t (a, b); INSERT INTO t VALUES (1, 'x'), (2, 'y')" },
  question: "Which?",
  gold: "SELECT b FROM t ORDER BY a DESC",
  source: "easy",
}

function start(environment: Environment<SqlTask>, what = task) {
  return environment.start(what, { signal: new AbortController().signal, random: new Random(1) })
}

describe("sql", () => {
  it("fulfils the environment contract", async () => {
    await checkEnvironment(await sql())
    await checkEnvironment(await sql({ maxSteps: 1, thinking: "required", rules: false }))
  })

  it("is solved by the expert for each kind of question, also by its plan", async () => {
    const environment = await sql()
    for (const task of takeTasks(environment, "test", new Random(1), questionKinds.length)) {
      const episode = await start(environment, task)
      const { action } = environment.parse(environment.expert!(task).complete(episode.first, [])!, episode.first)
      expect(await episode.step(action)).toMatchObject({ reward: 1, terminated: true, metrics: { success: 1 } })

      const looked = await start(environment, task)
      const values: string[] = []
      const fill = (text: string) => text.replace(/\$(\d)/g, (_, n) => values[n - 1]!)
      const { lookups, sum } = task.plan!
      for (const sql of [...lookups, ...(sum === undefined ? [] : [`SELECT ${sum}`])]) {
        const { observation } = await looked.step(`<sql>${fill(sql)}</sql>`)
        values.push(observation.text.split("\n").slice(1).join("\n"))
      }
      const answer = await looked.step(`<answer>${task.gold}</answer>`)
      expect(answer.reward).toBe(1)
      const again = await start(environment, task)
      const { observation } = await again.step(`<sql>${task.gold}</sql>`)
      expect(observation.text.split("\n").slice(1).join("\n")).toBe(values.at(-1))
    }
  })

  it("uses shops in the test that do not occur in training, the same each time", async () => {
    const environment = await sql()
    const of = (split: "train" | "test", seed: number) => takeTasks(environment, split, new Random(seed), 100)
    const scripts = (tasks: readonly SqlTask[]) => new Set(tasks.map(({ database }) => JSON.stringify(database)))
    expect(of("test", 1)).toEqual(of("test", 2))
    expect(of("train", 1)).toEqual(of("train", 1))
    expect(of("train", 1)).not.toEqual(of("train", 2))
    const trained = scripts(of("train", 1))
    expect([...scripts(of("test", 1))].filter((script) => trained.has(script))).toEqual([])
  })

  it("shows tables and question, then earlier queries and results", async () => {
    const environment = await sql({ maxRows: 1 })
    const episode = await start(environment)
    expect(episode.first.text).toBe("CREATE TABLE t (a, b)\n\nWhich?")
    const looked = await episode.step("<sql>SELECT a FROM t</sql>")
    expect(looked).toMatchObject({ reward: 0, terminated: false, observation: { text: "a\n1\n… 1 more rows" } })
    const turn = {
      observation: episode.first,
      completion: "<sql>SELECT a FROM t</sql>",
      action: "<sql>SELECT a FROM t</sql>",
    }
    const [message] = environment.prompt(task, [turn], looked.observation)
    for (const part of ["CREATE TABLE t", "Which?", "<sql>SELECT a FROM t</sql>\na\n1", "inside <answer>"])
      expect(message!.content).toContain(part)
    const wrong = await episode.step("<sql>SELECT c FROM t</sql>")
    expect(wrong).toMatchObject({ observation: { text: "Error: no such column: c" }, metrics: { failedQueries: 1 } })
    expect(wrong.observation.anchor).not.toBe(looked.observation.anchor)
    const right = await episode.step("<answer>SELECT b AS any FROM t ORDER BY b DESC</answer>")
    expect(right).toMatchObject({ reward: 1, terminated: true, metrics: { success: 1, "success/easy": 1, queries: 3 } })
  })

  it("gives agents access to its databases", async () => {
    const { databases } = await sql({ timeLimit: 0.1 })
    expect(await databases.query(task.database, task.gold)).toMatchObject({ rows: [["y"], ["x"]] })
    const endless = "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    expect(await databases.query(task.database, endless)).toEqual({ error: "the query took longer than 0.1 s" })
  })

  it("gives reward 0 for another result or order, failing statements, and if no answer is given", async () => {
    const environment = await sql({ maxSteps: 2 })
    for (const answer of [
      "SELECT b FROM t ORDER BY a",
      "SELECT b FROM t WHERE a = 1",
      "SELECT c FROM t",
      "DROP TABLE t",
    ]) {
      const end = await (await start(environment)).step(`<answer>${answer}</answer>`)
      expect(end, answer).toMatchObject({ reward: 0, terminated: true, metrics: { success: 0 } })
    }
    const episode = await start(environment)
    expect(await episode.step("")).toMatchObject({ truncated: false, observation: { text: "" } })
    expect(await episode.step("<sql>SELECT 1</sql>")).toMatchObject({ truncated: true, reward: 0 })
    await expect(episode.step("")).rejects.toThrow("ended")
  })

  it.each([
    ["<sql> SELECT 1 </sql>", "<sql>SELECT 1</sql>", true],
    ["<think>so</think><ANSWER>SELECT 1</ANSWER>", "<answer>SELECT 1</answer>", true],
    ["<sql>SELECT 1</sql><answer>SELECT 2</answer>", "<sql>SELECT 1</sql>", false],
    ["SELECT 1", "", false],
  ])("reads %s", async (completion, action, valid) => {
    const environment = await sql()
    expect(environment.parse(completion, { text: "", anchor: "" })).toEqual({ action, valid })
  })

  it.each(["SELECT 1", "SELECT c FROM t"])(
    "attributes a failing gold statement to the data, for the answer %s",
    async (answer) => {
      const environment = await sql()
      const episode = await start(environment, { ...task, gold: "SELECT c FROM t" })
      await expect(episode.step(`<answer>${answer}</answer>`)).rejects.toThrow(
        expect.objectContaining({ code: "BAD_DATA", message: expect.stringContaining("no such column") }),
      )
    },
  )
})

describe("questions from files", () => {
  const databases = join(folder, "databases")
  mkdirSync(join(databases, "shop"), { recursive: true })
  for (const file of [join(databases, "shop", "shop.sqlite"), join(databases, "flat.sqlite")]) {
    const database = new Database(file)
    database.exec("CREATE TABLE t (a); INSERT INTO t VALUES (7)")
    database.close()
  }
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const rows = Array.from({ length: 40 }, (_, i) => ({ db_id: i % 2 ? "shop" : "flat", question: `How many? (${i})`, query: "SELECT a FROM t" })) // biome-ignore format: one line

  it("are read from Spider's list and BIRD's lines, with a tenth held out, and played on unchanged database files", async () => {
    const spider = write("spider.json", JSON.stringify(rows))
    const bird = write(
      "bird.jsonl",
      rows
        .map(({ query, ...row }) => JSON.stringify({ ...row, SQL: query, evidence: "a counts", difficulty: "simple" }))
        .join("\n"),
    )
    const environment = await sql({ questions: spider, databases })
    const [train, test] = (["train", "test"] as const).map((split) => takeTasks(environment, split, new Random(1), 36))
    expect(test!.length).toBeGreaterThan(0)
    expect(train!.filter(({ question }) => test!.some((one) => one.question === question))).toEqual([])
    await checkEnvironment(environment)
    const both = await sql({ questions: spider, testQuestions: bird, databases })
    const [task] = takeTasks(both, "test", new Random(1), 1)
    expect(task).toMatchObject({ question: "How many? (0) (a counts)", gold: "SELECT a FROM t", source: "simple" })
    const episode = await start(both, task!)
    const { observation } = await episode.step("<sql>WITH gone AS (SELECT 1) DELETE FROM t</sql>")
    expect(observation.text).toContain("Error: ")
    expect(await episode.step("<answer>SELECT 7</answer>")).toMatchObject({ reward: 1 })
  })

  it.each<[string, SqlOptions, string]>([
    ["no list", { questions: write("object.json", "{}"), databases }, "a list of questions"],
    ["no JSON", { questions: write("broken.json", "["), databases }, "Cannot read"],
    ["none", { questions: write("empty.jsonl", ""), databases }, "no questions"],
    ["without gold", { questions: write("gold.json", '[{"db_id":"shop","question":"?"}]'), databases }, '"query" or "SQL"'],
    ["a database that is not there", { questions: write("lost.json", '[{"db_id":"lost","question":"?","query":"SELECT 1"}]'), databases }, "does not exist"],
    ["a way out of the folder", { questions: write("out.json", '[{"db_id":"../shop","question":"?","query":"SELECT 1"}]'), databases }, "not a valid file name"],
    ["questions without databases", { questions: "x.json" }, "must be given together"],
    ["databases without questions", { databases }, "must be given together"],
    ["kinds beside questions", { questions: "x.json", databases, kinds: ["price"] }, "embedded shops"],
    ["no kinds", { kinds: [] }, "kinds is empty"],
    ["an unknown kind", { kinds: ["prise" as "price"] }, "kinds"],
    ["no time", { timeLimit: 0 }, "timeLimit"],
  ])("rejects %s", async (_, options, message) => {
    await expect(sql(options)).rejects.toThrow(message)
  }) // biome-ignore format: a table
})
