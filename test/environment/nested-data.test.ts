import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { readEvaluation } from "../../src/benchmark/evaluation-file.ts"
import { readGrammar } from "../../src/environment/alfworld/grammar.ts"
import { readJsonLines } from "../../src/environment/json-lines.ts"
import { openCorpus } from "../../src/environment/search/corpus.ts"
import { readQuestions } from "../../src/environment/search/questions.ts"
import { readQuestions as readSqlTasks } from "../../src/environment/sql/questions.ts"
import { taskFile } from "../../src/environment/tasks/tasks.ts"
import { readElements } from "../../src/environment/webshop/json-elements.ts"
import { isDeeper, readJson } from "../../src/json/depth.ts"

// Data that is nested thousands deep: JSON.parse reads it, and what walks it later would run out of stack.

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-nested-"))
})
afterAll(() => rm(folder, { recursive: true }))

const deep = `${"[".repeat(5000)}${"]".repeat(5000)}`

async function written(name: string, text: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, text)
  return path
}

async function all(values: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of values);
}

const readers: readonly [string, string, (path: string) => Promise<unknown>][] = [
  ["lines of tasks", `{"a":1}\n{"x":${deep}}\n`, (path) => taskFile({ tasks: path })],
  ["lines of a corpus", `{"id":1,"contents":"a","x":${deep}}\n`, (path) => openCorpus(path)],
  ["lines of questions", `{"question":"a","golden_answers":["b"],"x":${deep}}\n`, (path) => readQuestions(path)],
  ["lines of an evaluation", `{"x":${deep}}\n`, (path) => readEvaluation(path)],
  ["lines of transcripts", `{"messages":${deep}}\n`, (path) => all(readJsonLines(path))],
  ["a list of questions about databases", `[{"x":${deep}}]`, (path) => readSqlTasks(path, folder)],
  ["elements of a catalogue", `[{"x":${deep}}]`, (path) => readElements(path, () => true)],
]

it.each(readers)("%s are rejected as bad data", async (name, text, read) => {
  const path = await written(`${name.replaceAll(" ", "-")}.${name.startsWith("lines") ? "jsonl" : "json"}`, text)
  await expect(read(path)).rejects.toMatchObject({
    code: "BAD_DATA",
    message: expect.stringMatching(/nested more than/),
  })
})

it("rejects deep rules of a household, and removes comments in linear time", { timeout: 20_000 }, () => {
  expect(() => readGrammar(`grammar :: """{"x": ${deep}}""";`)).toThrow(/not JSON .*nested more than/)
  const blanks = "\r".repeat(500_000)
  expect(() => readGrammar(`grammar :: """{"x": 1}${blanks}y # no comment""";`)).toThrow(/not JSON/)
  expect(readGrammar('grammar :: """\n  # a comment\n{}""";').rules.size).toBe(0)
})

it("reads the maximum number of levels", () => {
  const level = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
  expect(isDeeper(readJson(level(200)), 199)).toBe(true)
  expect(() => readJson(level(201))).toThrow(/nested more than 200 levels deep/)
})
