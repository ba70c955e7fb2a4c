import { expect, it } from "vitest"
import { actionText, toolCalls } from "../../../src/view/data/tool-calls.ts"

const call = (name: string, given: unknown) => JSON.stringify([[name, given]])

it("reads the calls of an agent with their arguments", () => {
  expect(toolCalls(call("query", '{"sql": "SELECT 1", "limit": 5, "of": {"a": [1]}}'))).toEqual([
    {
      name: "query",
      arguments: [
        { name: "sql", value: "SELECT 1" },
        { name: "limit", value: "5" },
        { name: "of", value: '{"a":[1]}' },
      ],
    },
  ])
  expect(toolCalls(call("look", {}))).toEqual([{ name: "look", arguments: [] }])
  expect(toolCalls(call("say", '{"broken'))).toEqual([{ name: "say", arguments: [{ value: '{"broken' }] }])
  expect(toolCalls(call("say", "[1,2]"))).toEqual([{ name: "say", arguments: [{ value: "[1,2]" }] }])
  const two = JSON.stringify([
    ["a", '{"x": "1"}'],
    ["b", '{"y": "2", "z": "3"}'],
  ])
  expect(actionText(two)).toBe("a · 1; b · 2 · 3")
})

it("reads texts in tags, with or without their end", () => {
  for (const action of ["<sql>SELECT a < 3</sql>", " <sql>\nSELECT a < 3\n</sql>\n", "<sql>SELECT a < 3"])
    expect([action, actionText(action)]).toEqual([action, "sql · SELECT a < 3"])
  expect(actionText("<answer></answer>")).toBe("answer · ")
})

it.each(["up", "", "[[", "[[1,2],[3,4]]", '[["a"]]', "[]", "<b>x</b> and <i>y</i>", "a <b>", "<|im_end|>"])(
  "leaves another action as it is: %j",
  (action) => {
    expect(actionText(action)).toBe(action)
  },
)
