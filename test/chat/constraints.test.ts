import { expect, it } from "vitest"
import type { Call, Tool } from "../../src/chat/call.ts"
import { Constraints } from "../../src/chat/constraints.ts"
import { schemaProblem } from "../../src/chat/tools/check-schema.ts"
import { qwen } from "../../src/chat/tools/qwen.ts"
import { bytes } from "../grammar/texts.ts"

const strict = (parameters: unknown, at: number): Tool => ({
  name: `f${at}`,
  parameters,
  strict: true,
  field: `tools[${at}].function.parameters`,
  definition: {},
})
const callOf = (schemas: readonly unknown[]): Call => ({
  ...{ model: "policy", messages: [], tools: schemas.map(strict), toolChoice: "required", parallel: true },
  ...{ format: { kind: "text" }, maxTokens: undefined, stop: [], count: 1, seed: undefined, temperature: undefined },
  ...{ logProbs: false, topLogProbs: 0, stream: false },
})
/** The field and the reason of the rejection. */
const refused = async (schemas: readonly unknown[]): Promise<[unknown, string]> => {
  try {
    await new Constraints(qwen(false), { vocabulary: () => bytes }).of(callOf(schemas), "")
    return [undefined, ""]
  } catch (error) {
    return [(error as { param?: unknown }).param, (error as Error).message]
  }
}
const object = (value: unknown) => ({ type: "object", properties: { a: value }, required: ["a"] })

it("names the tool whose schema is rejected, or all tools where they are too much together", {
  timeout: 20_000,
}, async () => {
  const fine = object({ type: "string" })
  const long = object({ type: "string", maxLength: 8000 })
  const text = (length: number) => ({ ...fine, description: "x".repeat(length) })
  expect(await refused([fine, object({ type: "string", pattern: "(" })])).toEqual([
    "tools[1].function.parameters",
    expect.stringMatching(/pattern/),
  ])
  expect(await refused([long, object({ type: "string", maxLength: 2 ** 40 })])).toEqual([
    "tools[1].function.parameters",
    expect.stringMatching(/instructions/),
  ])
  // Each is fine alone; only as many are compiled as fit together.
  expect(await refused(Array(2500).fill(long))).toEqual(["tool_choice", expect.stringMatching(/instructions/)])
  expect(await refused([text(120_000), text(120_000)])).toEqual([undefined, ""])
  expect(await refused([text(120_000), text(120_000), text(120_000)])).toEqual([
    "tool_choice",
    expect.stringMatching(/characters in total; the maximum is 262144/),
  ])
})

it("checks thousands of arguments against thousands of constants by looking each up", { timeout: 20_000 }, () => {
  const all = Array.from({ length: 20_000 }, (_, i) => i)
  const schema = { type: "array", items: { enum: all } }
  expect(schemaProblem(all, schema, "arguments")).toBe(undefined)
  expect(schemaProblem([...all, 20_000, -1], schema, "arguments")).toMatch(/^arguments\[20000\] must be 0 or 1 or/)
})

it("makes what another client has waiting at once, instead of waiting behind all that this client asked for", async () => {
  const constraints = new Constraints(qwen(false), { vocabulary: () => bytes })
  const plain = callOf([])
  const heavy = (at: number) => callOf([object({ enum: Array.from({ length: 3000 }, (_, value) => `${at}-${value}`) })])
  let waiting = 3
  const busy = [heavy(1), heavy(2), plain].map(async (call) => {
    await constraints.of({ ...call, toolChoice: call === plain ? "auto" : "required", client: 1 }, "")
    waiting--
  })
  await constraints.of({ ...plain, toolChoice: "auto", client: 2 }, "")
  expect(waiting).toBe(3)
  await Promise.all(busy)
})
