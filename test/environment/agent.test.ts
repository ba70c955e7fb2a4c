import { describe, expect, it } from "vitest"
import { agentFields, completionFormat, hasThought, readAction, rememberTurns } from "../../src/environment/agent.ts"
import type { PastStep } from "../../src/environment/environment.ts"
import { readOptions } from "../../src/environment/options.ts"

const turn = (text: string, action: string): PastStep => ({
  observation: { text, anchor: text },
  completion: "",
  action,
})

describe("readAction", () => {
  const read = (completion: string, thinking: "optional" | "required" | "off" = "required") =>
    readAction(completion, { tail: 5, thinking })

  it.each([
    ["<think>a</think><action>Go North</action>", "go north", true],
    ["<THINK>a</THINK><ACTION> go </ACTION>", "go", false],
    ["<action>go</action>", "go", false],
    ["<think>a<action>go</action>", "go", false],
    ["<action>go</action><think></think>", "go", true],
    ["<think></think><action>one</action><action>two</action>", "one", true],
    ["<think><action>one</action></think><action>two</action>", "one", true],
    ["<think></think><action><action>go</action></action>", "<action>go", true],
    ["<think></think></action><action>go", "", true],
    ["<think></think><action>go", "on>go", false],
    ["<think></think><action>走</action>", "走", false],
    ["<think>走</think><action>go</action>", "go", false],
    ["<think>カナ</think><action>go</action>", "go", true],
    ["İ<think></think><ACTION>İÀ</ACTION>İ", "i̇à", true],
    ["<think></think><action>\x1c\x1f\x85go\u3000</action>", "go", true],
    ["<think></think><action>\ufeffgo\ufeff </action>", "\ufeffgo\ufeff", true],
    ["", "", false],
    ["abc😀defg", "😀defg", false],
    ["x😀😀😀😀😀", "😀😀😀😀😀", false],
  ])("reads %j as the reference does", (completion, action, valid) => {
    expect(read(completion)).toEqual({ action, valid })
  })

  it("accepts a thought opened by the chat template, unlike the reference", () => {
    expect(read("It is north.</think><action>go</action>")).toEqual({ action: "go", valid: true })
    expect([hasThought("a</think>b"), hasThought("<think>a"), hasThought("a</THINK>")]).toEqual([true, false, false])
  })

  it("can preserve case", () => {
    const kept = (completion: string) => readAction(completion, { tail: 5, thinking: "off", keepCase: true })
    expect(kept("İ<Action> Go NORTH </aCTION>")).toEqual({ action: "Go NORTH", valid: true })
    expect(kept("Go NORTH")).toEqual({ action: "NORTH", valid: false })
    expect(kept("<action>走</action>").valid).toBe(false)
  })

  it("requests thinking only if it is required", () => {
    for (const thinking of ["optional", "off"] as const) {
      expect(read("<action>go</action>", thinking)).toEqual({ action: "go", valid: true })
      expect(read("<action>go", thinking).valid).toBe(false)
    }
  })
})

describe("rememberTurns", () => {
  const turns = [turn("a room", "open door"), turn("a hall", "look"), turn("a yard", "dig")]

  it("shows the last steps with their original numbers", () => {
    expect(rememberTurns(turns, { history: 2, memory: undefined })).toBe(
      "[Observation 2: 'a hall', Action 2: 'look']\n[Observation 3: 'a yard', Action 3: 'dig']",
    )
    expect(rememberTurns(turns, { history: "all", memory: undefined }).split("\n")).toHaveLength(3)
    expect(rememberTurns(turns, { history: 0, memory: undefined })).toBe("")
    expect(rememberTurns([], { history: 2, memory: undefined })).toBe("")
  })

  it("can be replaced by a function of the whole history", () => {
    expect(rememberTurns(turns, { history: 1, memory: (all) => all.map(({ action }) => action).join(" > ") })).toBe(
      "open door > look > dig",
    )
  })
})

it("replyFormat mentions thinking only if it is enabled", () => {
  expect(completionFormat("required", "one action")).toContain("First think")
  expect(completionFormat("optional", "one action")).toContain("may think")
  expect(completionFormat("off", "one action")).toBe("Give one action inside <action> </action>.")
})

describe("the agent's options", () => {
  const read = (options: object) => readOptions("shop", options, agentFields())

  it("have the reference's defaults", () => {
    expect(read({})).toEqual({
      history: 2,
      thinking: "required",
      rules: true,
      memory: undefined,
      prompt: undefined,
      parse: undefined,
    })
    expect(read({ history: "all", rules: undefined })).toMatchObject({ history: "all", rules: true })
  })

  it.each([
    [{ history: -1 }, 'shop: history must be an integer from 0 to 1000 or "all", not -1.'],
    [{ history: "some" }, 'not "some"'],
    [{ thinking: "no" }, 'thinking must be "optional" or "required" or "off"'],
    [{ rules: 1 }, "rules must be true or false, not 1"],
    [{ memory: "mine" }, 'memory must be a group of keys, not "mine"'],
    [{ memory: { name: "sumary" } }, "Did you mean summary?"],
    [{ memory: { name: "mine", start: 1 } }, "memory must be a function history => string, or a memory"],
    [{ promt: 1 }, "promt is not an option; did you mean prompt?"],
    [null, "options must be an object"],
    [[], "options must be an object"],
    [{ rules: Symbol("yes") }, "not Symbol.yes."],
  ])("reject %j", (options, message) => {
    expect(() => read(options as object)).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringMatching(message.replaceAll(/[.?]/g, ".")) }),
    )
  })
  it("reject values that JSON cannot represent: big integers, and cyclic values", () => {
    expect(() => read({ history: 2n })).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringMatching(/history must .* not 2n\.$/) }),
    )
    const circle: { self?: object } = {}
    circle.self = circle
    expect(() => read({ memory: circle })).toThrow(
      expect.objectContaining({
        code: "BAD_CONFIG",
        message: expect.stringContaining("memory.name is missing"),
      }),
    )
  })
})
