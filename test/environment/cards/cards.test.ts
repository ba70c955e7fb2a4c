import { describe, expect, it } from "vitest"
import { completionFormat } from "../../../src/environment/agent.ts"
import { blackjack } from "../../../src/environment/cards/blackjack.ts"
import { ezPoints } from "../../../src/environment/cards/ez-points.ts"
import { numberLine } from "../../../src/environment/cards/number-line.ts"
import type { CardOptions, CardTask } from "../../../src/environment/cards/options.ts"
import { points24 } from "../../../src/environment/cards/points24.ts"
import type { Environment, PastStep } from "../../../src/environment/environment.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { Random } from "../../../src/util/random.ts"
import { firstTasks, start } from "./play.ts"

type Factory = (options?: CardOptions) => Environment<CardTask>
const factories: [string, Factory][] = [
  ["number-line", numberLine],
  ["ez-points", ezPoints],
  ["points24", points24],
  ["blackjack", blackjack],
]
const now = { text: "", anchor: "" }

describe.each(factories)("%s", (name, factory) => {
  it.each([
    {},
    { completionFormat: "tags", history: 2, rules: false },
    { completionFormat: "tags", thinking: "off", reward: "rl4vlm" },
    { history: "all", maxSteps: 3 },
  ] as CardOptions[])("keeps the contract of environments with %j", async (options) => {
    expect(factory(options).name).toBe(name)
    await checkEnvironment(factory(options), { tasks: 5 })
  })

  it("holds out seeds from 65536", () => {
    expect(firstTasks(factory(), "test", 3)).toEqual([65536, 65537, 65538])
    const train = firstTasks(factory(), "train", 1000)
    expect(train.every((seed) => seed >= 0 && seed < 65535)).toBe(true)
    expect(train).toEqual(firstTasks(factory(), "train", 1000))
    expect(train).not.toEqual(firstTasks(factory(), "train", 1000, 2))
  })

  it("rejects unknown actions, ended and disposed episodes, aborted signals and bad seeds", async () => {
    const environment = factory({ maxSteps: 1 })
    const episode = await start(environment, 1)
    await expect(episode.step("jump")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /has no action "jump"/ })
    expect((await episode.step("none")).truncated).toBe(true)
    await expect(episode.step("none")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /episode has ended/ })
    await episode[Symbol.asyncDispose]?.()
    await expect(episode.step("none")).rejects.toMatchObject({ code: "DISPOSED" })
    const context = { signal: AbortSignal.abort(new Error("enough")), random: new Random(1) }
    await expect(environment.start({ seed: 1 }, context)).rejects.toThrow("enough")
    for (const seed of [-1, 1.5, Number.NaN, 2 ** 60, "1", 1n, Symbol("1")]) {
      await expect(start(environment, seed as number)).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    }
    for (const task of [undefined, null, "x", {}]) {
      const started = environment.start(task as CardTask, { ...context, signal: new AbortController().signal })
      await expect(started).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    }
  })

  it.each([
    [{ reward: "rl5" }, 'reward must be "verl-agent" or "rl4vlm", not "rl5"'],
    [{ completionFormat: "yaml" }, "completionFormat must be"],
    [{ maxSteps: 0 }, "maxSteps must be an integer from 1 to 10000, not 0"],
    [{ history: -1 }, "history"],
    [{ prompt: "you are" }, "prompt must be a function"],
    [{ seed: 1 }, "seed is not an option; known: "],
  ])("rejects the options %j", (options, message) => {
    expect(() => factory(options as unknown as CardOptions)).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringContaining(`${name}: ${message}`) }),
    )
  })

  it("accepts a custom prompt and custom parsing", () => {
    const environment = factory({
      prompt: () => [{ role: "user", content: "?" }],
      parse: () => ({ action: "none", valid: true }),
    })
    expect(environment.prompt({ seed: 1 }, [], now)).toEqual([{ role: "user", content: "?" }])
    expect(environment.parse("", now)).toEqual({ action: "none", valid: true })
  })
})

it("reject invalid options", () => {
  expect(() => numberLine({ maxPosition: 1 })).toThrow(expect.objectContaining({ code: "BAD_CONFIG" }))
  expect(() => points24({ solvable: "some" as "only" })).toThrow(expect.objectContaining({ code: "BAD_CONFIG" }))
})

describe("JSON completions", () => {
  it.each<[Factory, string, string]>([
    [numberLine, '{"current number": "1", "thoughts": "+ or -?", "action": "+"}', "+"],
    [numberLine, '{"ACTION": "-"}', "-"],
    [numberLine, '"action": + or -', "none"],
    [numberLine, '{"action" : "+"}', "none"],
    [numberLine, "so I take +", "+"],
    [numberLine, "+1", "none"],
    [numberLine, '{"action": "+", "why": "5 - 4"}', "none"],
    [numberLine, "", "none"],
    [blackjack, '{"thoughts": "stand? no", "action": "HIT"}', "hit"],
    [blackjack, '{"action": "hit or stand"}', "none"],
    [blackjack, '{"action": "understand"}', "stand"],
    [blackjack, '{"action": "what"}', "none"],
    [blackjack, "hit", "none"],
    [ezPoints, '{"action": "10"}', "10"],
    [ezPoints, '{"action": "1"}', "1"],
    [ezPoints, '{"action": "1100"}', "none"],
    [ezPoints, '{"action": "10 10"}', "10"],
    [ezPoints, '{"action": "-"}', "none"],
    [ezPoints, '{"action": "12"}', "none"],
    [ezPoints, '{"action": "5"} because 5 + 7', "none"],
    [ezPoints, "10", "none"],
    [ezPoints, "the sum is 5", "5"],
    [ezPoints, "=", "="],
    [points24, '{"action": "-"}', "-"],
    [points24, '{"action": "("}', "("],
    [points24, '{"action": "(5"}', "none"],
    [points24, '{"action": "/", "action": "*"}', "none"],
  ])("are read as verl-agent reads them: %s %j is %s", (factory, completion, action) => {
    const expected = { action, valid: action !== "none" }
    expect(factory().parse(completion, now)).toEqual(expected)
    expect(factory({ thinking: "off" }).parse(completion, now)).toEqual(expected)
  })
})

describe("tagged completions", () => {
  it.each<[Factory, string, string, boolean, boolean]>([
    [numberLine, "<think>up</think><action>+</action>", "+", true, true],
    [numberLine, "<action>+</action>", "+", false, true],
    [numberLine, "up</think><action>+</action>", "+", true, true],
    [numberLine, "<action> + or - </action>", "none", false, false],
    [numberLine, "+", "+", false, false],
    [blackjack, "<think>.</think><action>Hit</action>", "hit", true, true],
    [blackjack, "<think>.</think><action>none</action>", "none", false, false],
    [ezPoints, "<action>10</action>", "10", false, true],
    [points24, "<think>(</think><action>)</action>", ")", true, true],
    [points24, '{"action": "5"}', "none", false, false],
  ])("name one action, %s %j: %s", (factory, completion, action, valid, validWithoutThought) => {
    expect(factory({ completionFormat: "tags" }).parse(completion, now)).toEqual({ action, valid })
    const off = factory({ completionFormat: "tags", thinking: "off" }).parse(completion, now)
    expect(off).toEqual({ action, valid: validWithoutThought })
  })
})

describe("prompts", () => {
  const observation = { text: "Cards: 4 8\nFormula: ", anchor: "Cards: 4 8\nFormula: " }
  const history: PastStep[] = [{ observation, completion: '{"action": "4"}', action: "4" }]
  const next = { text: "Cards: 4 8\nFormula: 4", anchor: "Cards: 4 8\nFormula: 4" }
  const content = (options: CardOptions, past = history) =>
    ezPoints(options).prompt({ seed: 0 }, past, past.length > 0 ? next : observation)[0]!.content

  it("explain, show the state and request JSON, without history", () => {
    expect(content({})).toMatchInlineSnapshot(`
      "You build a formula, one element at a time, whose value is 12. It must use both cards, each once. Number cards count what they show, A counts 1, and J, Q and K count 10.

      Each action appends one element at the end of the formula: the number of a card that is not used yet, + or *. The action = ends the formula and evaluates it: 12 with both cards used earns 10, and nothing else earns anything.

      Step 2, now:
      Cards: 4 8
      Formula: 4

      Reply with a JSON object of this form:
      {
      "thoughts": "which numbers are unused, what the formula needs to come to the value, and what to append next",
      "action": "a card's number, + * or ="
      }"
    `)
  })

  it("request tags, and show the history, on request", () => {
    expect(content({ completionFormat: "tags", history: 2 }).split("\n\n").slice(2)).toEqual([
      "[Observation 1: 'Cards: 4 8\nFormula: ', Action 1: '4']",
      "Step 2, now:\nCards: 4 8\nFormula: 4",
      completionFormat("required", "a card's number, + * or ="),
    ])
  })

  it("contain only the state without rules", () => {
    expect(content({ rules: false })).toBe(next.text)
    expect(content({ rules: false, history: 1 })).toBe(
      "[Observation 1: 'Cards: 4 8\nFormula: ', Action 1: '4']\n\nCards: 4 8\nFormula: 4",
    )
  })

  it("contain the rules of each game", () => {
    const rules = (factory: Factory) => factory().prompt({ seed: 0 }, [], { text: "now", anchor: "" })[0]!.content
    expect(rules(numberLine)).toMatch(/from 0 to 5/)
    expect(rules(points24)).toMatch(/24.*four cards/s)
    expect(rules(blackjack)).toMatch(/21.*dealer.*17/s)
    for (const [, factory] of factories) expect(rules(factory)).toMatch(/Step 1, now:\nnow\n\nReply with a JSON object/)
  })
})
