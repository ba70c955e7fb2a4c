import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { taskFile } from "../../../src/environment/tasks/tasks.ts"
import { stringify } from "../../../src/json/text.ts"
import { Random } from "../../../src/util/random.ts"

let folder = ""
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-tasks-"))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function put(name: string, text: string): Promise<string> {
  await writeFile(join(folder, name), text)
  return join(folder, name)
}

function first(tasks: Iterable<unknown>, count: number): unknown[] {
  const found: unknown[] = []
  for (const task of tasks) if (found.push(task) === count) break
  return found
}

it("provides the lines of a file, of any kind, and holds out a tenth", async () => {
  const all = Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? { n: i } : `task ${i}`))
  const tasks = await put("all.jsonl", `${all.map((task) => JSON.stringify(task)).join("\n\n")}\n`)
  const offered = await taskFile({ tasks })
  const test = [...offered.tasks("test", new Random(1))]
  expect(test.length).toBeGreaterThan(2)
  const train = first(offered.tasks("train", new Random(1)), 100 - test.length)
  const text = (task: unknown) => JSON.stringify(task)
  expect([...train, ...test].map(text).sort()).toEqual(all.map(text).sort())
  expect(first(offered.tasks("train", new Random(1)), 9)).toEqual(train.slice(0, 9))
  expect(first(offered.tasks("train", new Random(2)), 9)).not.toEqual(train.slice(0, 9))
  const testTasks = await put("test.jsonl", "3\nnull\n")
  expect([...(await taskFile({ tasks, testTasks })).tasks("test", new Random(1))]).toEqual([3, null])
})

it("rejects missing, empty, invalid, too few and duplicate tasks", async () => {
  const [empty, broken, one] = [await put("empty", "\n"), await put("broken", '{"a":1}\n{'), await put("one", "1\n")]
  await expect(taskFile({ tasks: join(folder, "gone") })).rejects.toMatchObject({ code: "BAD_DATA" })
  await expect(taskFile({ tasks: empty })).rejects.toThrow(`${empty} has no tasks.`)
  await expect(taskFile({ tasks: broken })).rejects.toThrow(/broken, line 2 is not JSON/)
  await expect(taskFile({ tasks: one })).rejects.toThrow(
    /has 1 task, too few .* give a file of test tasks \(testTasks\)/,
  )
  await expect(taskFile({ tasks: one, testTasks: one })).rejects.toMatchObject({ code: "BAD_CONFIG" })
  await expect(taskFile({} as never)).rejects.toThrow(/tasks is missing/)
})

it("preserves JSON as in the file, and rejects what would change", async () => {
  const lines = [
    '{"id": 2512292042121000001, "10": 20.0, "2": [1e-07]}',
    '{"id": 2512292042121000002, "10": 20.0, "2": [1e-07]}',
  ]
  const [tasks, testTasks] = [await put("foreign.jsonl", lines.join("\n")), await put("held.jsonl", "7\n")]
  const offered = await taskFile({ tasks, testTasks })
  expect(
    first(offered.tasks("train", new Random(1)), 2)
      .map(stringify)
      .sort(),
  ).toEqual(lines)
  const large = await put("large.jsonl", "1\n2512292042121000001\n")
  await expect(taskFile({ tasks: large, testTasks })).rejects.toThrow(/large.jsonl, line 2 is an integer beyond/)
  const latin = join(folder, "latin.jsonl")
  await writeFile(latin, Buffer.from('"a"\n"\u00e9"\n', "latin1"))
  await expect(taskFile({ tasks: latin, testTasks })).rejects.toThrow(/latin.jsonl, line 2 is not UTF-8/)
})
