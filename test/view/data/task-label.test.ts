import { expect, it } from "vitest"
import { questionFirst, taskLabel } from "../../../src/view/data/task-label.ts"

const room = "# # #\n# P #\n# # #"

it.each([
  [{ seed: 7, room }, "seed 7"],
  [{ room, seed: 7, size: 1.5, easy: true }, "seed 7 · size 1.5 · easy true"],
  [{ goal: "put a mug on the desk", at: { x: 1 } }, "put a mug on the desk"],
  [{ id: 267218, database: { change: 1 }, question: 'How many "blue" vases?\n' }, 'How many "blue" vases?\n'],
  [{ goal: "g", question: "q" }, "q"],
  [{ question: 7, seed: 3 }, "question 7 · seed 3"],
  ["put a mug on the desk", "put a mug on the desk"],
  [12, "12"],
  [{ room }, JSON.stringify({ room })],
  [[1, 2], "[1,2]"],
])("a task is called by its question, or what is short of it: %j", (task, label) => {
  expect(taskLabel(JSON.stringify(task))).toBe(label)
})

it("names a task whose JSON is cut, and one that is none", () => {
  expect(taskLabel(JSON.stringify({ seed: 7, room }).slice(0, 20))).toBe("seed 7")
  expect(taskLabel("<b>")).toBe("<b>")
  const json = JSON.stringify({ id: 1, question: 'Is "it" \u0007 here?' })
  const labels = Array.from({ length: 15 }, (_, cut) => taskLabel(json.slice(0, json.length - 2 - cut)))
  for (const label of labels) expect('Is "it" \u0007 here?').toContain(label)
})

it("has its question first where its JSON may be cut", () => {
  expect(JSON.stringify(questionFirst({ id: 1, question: "q", x: { y: 2 } }))).toBe(
    '{"question":"q","id":1,"x":{"y":2}}',
  )
  for (const task of ["text", 3, null, [1], { seed: 1 }, { question: 1 }]) expect(questionFirst(task)).toBe(task)
})
