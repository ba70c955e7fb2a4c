import { describe, expect, it } from "vitest"
import { estimate } from "../../src/credit/as-estimator.ts"
import { type BatchStep, toBatch } from "../../src/credit/batch.ts"
import { completionSpans, tokenKinds } from "../../src/credit/completion-spans.ts"
import type { Credit } from "../../src/credit/estimator.ts"
import { grpo } from "../../src/credit/grpo.ts"
import { type TokenWeightOptions, tokenWeights } from "../../src/credit/token-weights.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "../kernels/bad-argument.ts"

const tags = { think: ["think"], action: ["action", "answer"], tool: ["search"] }
const context = { progress: { iteration: 5, iterations: 10 }, random: new Random(0) }

describe("replySpans", () => {
  const parts = (text: string) =>
    completionSpans(text, tags).map(({ kind, start, end }) => `${kind}: ${text.slice(start, end)}`)

  it.each<[string, string[]]>([
    ["<think>a</think> <action>go</action>.", ["think: <think>a</think>", "action: <action>go</action>"]],
    ["a</think><ACTION>go</Action>", ["think: a</think>", "action: <ACTION>go</Action>"]],
    [
      "<think><action>no</action></think><answer>b</answer>",
      ["think: <think><action>no</action></think>", "action: <answer>b</answer>"],
    ],
    [
      "<action>no</action></think><search>q</search>",
      ["think: <action>no</action></think>", "tool: <search>q</search>"],
    ],
    ["<search>a</search>b<search>c</search>", ["tool: <search>a</search>", "tool: <search>c</search>"]],
    ["<think>cut", ["think: <think>cut"]],
    ["<think>open <action>go</action> on", ["think: <think>open ", "action: <action>go</action>"]],
    ["<action>a <answer>b</action> c</answer>", ["action: <action>a <answer>b</action>"]],
    ["</action> nothing </search>", []],
    ["<thinking>a</thinking> < think>", []],
    ["", []],
  ])("of %j", (text, expected) => {
    expect(parts(text)).toEqual(expected)
  })

  it("are empty without tags", () => {
    expect(completionSpans("<think>a</think>", { think: [], action: [], tool: [] })).toEqual([])
  })
})

it("assign a token to the part in which its text begins, and tokens without text to the next part", () => {
  const texts = ["<thi", "nk>a</", "think", "><", "", "action>", "go", "</action", ">.", ""]
  expect(tokenKinds(texts, tags)).toEqual([
    ...["think", "think", "think", "think"],
    ...["action", "action", "action", "action", "action"],
    "other",
  ])
  expect(tokenKinds(["a", "", "<search>", "b"], tags)).toEqual(["other", "tool", "tool", "tool"])
})

describe("tokenWeights", () => {
  const texts = [
    ["<think>", "a", "</think>", "<action>", "go", "</action>", ""],
    ["<search>", "q", "</search>", " "],
  ]
  const steps: BatchStep[] = texts.map((tokenTexts, episode) => ({
    task: 0,
    episode,
    reward: episode,
    length: tokenTexts.length,
    tokenTexts,
  }))
  const credit = async (options: TokenWeightOptions, under: Partial<Credit> = {}) => {
    const base = { name: "base", estimate: async () => ({ advantages: Float64Array.of(1, -1), ...under }) }
    return await estimate(tokenWeights(base, options), toBatch(steps), context)
  }
  const weights = async (...given: Parameters<typeof credit>) => (await credit(...given)).weights!.map((of) => [...of])

  it("differ for thinking, actions, tool calls and other tokens", async () => {
    expect(await weights({ think: 0.5, action: 2, tool: 3, other: 0.25 })).toEqual([
      [0.5, 0.5, 0.5, 2, 2, 2, 0.25],
      [3, 3, 3, 0.25],
    ])
    expect(await weights({ think: 0, actionTags: ["search"], toolTags: [], action: 4 })).toEqual([
      [0, 0, 0, 1, 1, 1, 1],
      [4, 4, 4, 1],
    ])
    expect((await weights({ action: { from: 1, to: 3 } }))[0]![3]).toBe(2)
    expect((await credit({})).metrics).toEqual({
      "tokens/think-share": 3 / 11,
      "tokens/action-share": 3 / 11,
      "tokens/tool-share": 3 / 11,
    })
  })

  it("multiply the weights of the estimator, and keep its other results", async () => {
    const given = { weights: texts.map((of) => new Float32Array(of.length).fill(2)), metrics: { "base/one": 1 } }
    const found = await credit({ action: 3 }, given)
    expect([...found.weights![0]!]).toEqual([2, 2, 2, 6, 6, 6, 2])
    expect(found).toMatchObject({ advantages: Float64Array.of(1, -1), metrics: { "base/one": 1 } })
  })

  it("can be normalized to mean 1 over the learned tokens", async () => {
    const mean = (of: readonly number[]) => of.reduce((a, b) => a + b, 0) / of.length
    expect(mean((await weights({ action: 5, think: 0.1, normalize: true })).flat())).toBeCloseTo(1, 6)
    const skipping = await weights({ action: 5, think: 0.1, normalize: true }, { skip: Uint8Array.of(0, 1) })
    expect(mean(skipping[0]!)).toBeCloseTo(1, 6)
    const nothing = await weights({ think: 0, action: 0, tool: 0, other: 0, normalize: true })
    expect(nothing.flat().every((weight) => weight === 0)).toBe(true)
  })

  it("keep name, needs and groups of the estimator", () => {
    const { name, needs, groups } = tokenWeights(grpo())
    expect([name, needs, groups]).toEqual(["grpo+token-weights", ["text"], grpo().groups])
    expect(tokenWeights(() => ({ advantages: new Float64Array(2) })).needs).toEqual(["text"])
  })

  it("reject invalid options, and steps without texts", async () => {
    expect(() => tokenWeights(grpo(), { think: -1 })).toThrow(badArgument(/tokenWeights: think must be at least 0/))
    expect(() => tokenWeights(grpo(), { toolTags: ["<a>"] })).toThrow(badArgument(/toolTags must be a list of names/))
    expect(() => tokenWeights(grpo(), { toolTags: ["Action"] })).toThrow(
      badArgument(/<action> is listed for action and for tool; list it once/),
    )
    const bare = toBatch(steps.map(({ tokenTexts: _, ...step }) => step))
    await expect(estimate(tokenWeights(grpo()), bare, context)).rejects.toEqual(
      badArgument(/give each step its tokenTexts/),
    )
    expect(() => toBatch([{ ...steps[0]!, length: 3 }])).toThrow(badArgument(/has 7 tokenTexts for 3 tokens/))
  })
})
