// Data files: transcripts to clone, tasks, questions and corpora.
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { transcripts } from "../../../modules/data/transcripts.js"
import { openCorpus } from "../../../modules/environment/search/corpus.js"
import { readQuestions } from "../../../modules/environment/search/questions.js"
import { taskFile } from "../../../modules/environment/tasks/tasks.js"
import { Tokenizer } from "../../../modules/tokenizer/tokenizer.js"
import { trainByteLevelTokenizer } from "../../../modules/tokenizer/train.js"
import { writeTokenizer } from "../../../modules/tokenizer/write.js"

export const lines = (...values) => Buffer.from(`${values.map((value) => JSON.stringify(value)).join("\n")}\n`)

const said = (role, content) => ({ role, content })
const messages = [said("system", "Be brief."), said("user", "Hi"), said("assistant", "Ho")]
const tool = {
  type: "function",
  function: { name: "f", parameters: { type: "object", properties: { x: { type: "number" } } } },
}
const calls = [{ id: "c1", type: "function", function: { name: "f", arguments: '{"x": 1}' } }]
const called = [
  messages[1],
  { role: "assistant", content: "", tool_calls: calls },
  { role: "tool", tool_call_id: "c1", content: "2" },
  messages[2],
]
const searchTest = new URL("../../environment/search/", import.meta.url)

export async function prepare(scratch) {
  const folder = join(scratch, "tokenizer")
  await writeTokenizer(
    folder,
    await trainByteLevelTokenizer(Array(8).fill("Be brief. Hi. Ho. 12 left."), { vocabularySize: 300 }),
  )
  const tokenizer = await Tokenizer.open(folder)
  const context = { tokenizer, completions: "all", successes: true, onWarning() {} }
  async function readAll(path) {
    for await (const _ of transcripts(path).examples(context));
  }
  async function retrieve(path) {
    const corpus = await openCorpus(path)
    await corpus.retrieve("town", 2, new AbortController().signal)
    await corpus[Symbol.asyncDispose]?.()
  }
  const passages = lines(
    { id: 1, contents: '"Paris"\nParis is a town.' },
    { id: 2, title: "Rome", text: "Rome is another town." },
  )
  const questions = lines(
    { id: "a", question: "Where is it?", golden_answers: ["there"] },
    { question: "Who?", golden_answers: ["he"] },
  )
  const testTasks = join(scratch, "test-tasks.jsonl")
  writeFileSync(testTasks, lines({ held: "out" }))
  const readers = {
    "transcripts.jsonl": [lines({ messages }, { messages: called, tools: [tool] }), readAll],
    "pairs.jsonl": [
      lines({ prompt: "Hi", completion: "Ho" }, { prompt: [messages[1]], completion: [messages[2]] }),
      readAll,
    ],
    "tasks.jsonl": [lines({ from: 1 }, { from: 2 }, 3, "x", [1, 2.5]), (tasks) => taskFile({ tasks, testTasks })],
    "questions.jsonl": [questions, (path) => readQuestions(path)],
    "corpus.jsonl": [passages, retrieve],
    ...Object.fromEntries(
      ["flashrag", "search-r1", "targets"].map((name) => [
        `${name}.parquet`,
        [readFileSync(new URL(`${name}.parquet`, searchTest)), (path) => readQuestions(path)],
      ]),
    ),
  }
  return {
    seeds: Object.entries(readers).map(([name, [bytes]]) => ({ name, bytes })),
    async run({ name, bytes }) {
      const path = join(scratch, name)
      writeFileSync(path, bytes)
      await readers[name][1](path)
    },
  }
}
