import { describe, expect, it } from "vitest"
import { readConversation } from "../../src/data/conversation.ts"
import { toolsOf, unknownKeys } from "../../src/data/line-checks.ts"
import { readPair } from "../../src/data/pair.ts"

const user = (content: string) => ({ role: "user", content })
const said = (more: object = {}) => ({ role: "assistant", content: "Ho", ...more })
const talk = (more: object) => ({ messages: [user("Hi"), said(more)] })

describe("a line of data", () => {
  it.each<[object, RegExp]>([
    [{ prompt: "a", completion: "b", label: false }, /label is not supported/],
    [{ prompt: "a", completion: "b", label: true }, /label is not supported/],
    [{ prompt: "a", completion: "b", system: "c" }, /system is not read/],
    [{ prompt: "a", completion: "b", weight: 0 }, /weight does not belong here/],
    [{ ...talk({}), tool: [] }, /did you mean tools/],
    [{ message: [] }, /did you mean messages/],
    [talk({ wieght: 0 }), /messages\[1\]\.wieght is unknown; did you mean weight/],
    [talk({ trian: false }), /did you mean train/],
    [talk({ toolcalls: [] }), /did you mean tool_calls/],
  ])("%j is rejected", (line, message) => expect(() => unknownKeys(line)).toThrow(message))

  it.each([
    { weight: 1, train: false },
    { weight: 0, train: true },
    { weight: 1e308 },
    { weight: 1e7 },
    { weight: -1 },
  ])("with a reply of %j is rejected", (more) =>
    expect(() => readConversation(talk(more), "all")).toThrow(/messages\[1\]\.(weight|train)/),
  )

  it("has its other unknown keys named", () =>
    expect(unknownKeys({ ...talk({ mood: 1 }), id: 3, source: null })).toEqual(["id", "messages[].mood"]))

  it("may call tools functions", () => {
    const functions = [{ name: "f" }]
    expect(toolsOf({ functions })).toBe(functions)
    expect(() => toolsOf({ functions, tools: [{ type: "function", function: { name: "g" } }] })).toThrow(/differs/)
  })

  it("with a pair of two prompts is rejected", () =>
    expect(() => readPair({ chosen: [user("a"), said()], rejected: [user("b"), said({ content: "x" })] })).toThrow(
      /another prompt/,
    ))
})
