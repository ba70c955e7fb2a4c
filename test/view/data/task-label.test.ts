import { expect, it } from "vitest"
import { taskLabel } from "../../../src/view/data/task-label.ts"

const room = "# # #\n# P #\n# # #"

it.each([
  [{ seed: 7, room }, "seed 7"],
  [{ room, seed: 7, size: 1.5, easy: true }, "seed 7 · size 1.5 · easy true"],
  [{ goal: "put a mug on the desk", at: { x: 1 } }, "goal put a mug on the desk"],
  ["put a mug on the desk", "put a mug on the desk"],
  [12, "12"],
  [{ room }, JSON.stringify({ room })],
  [[1, 2], "[1,2]"],
])("a task is called by what is short of it: %j", (task, label) => {
  expect(taskLabel(JSON.stringify(task))).toBe(label)
})

it("names a task whose JSON is cut, and one that is none", () => {
  expect(taskLabel(JSON.stringify({ seed: 7, room }).slice(0, 20))).toBe("seed 7")
  expect(taskLabel("<b>")).toBe("<b>")
})
