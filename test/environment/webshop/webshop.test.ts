import { describe, expect, it } from "vitest"
import type { PastStep } from "../../../src/environment/environment.ts"
import { type WebShopOptions, webshop } from "../../../src/environment/webshop/webshop.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { folder, present, reason } from "./data.ts"
import { playExpert, start, take } from "./play.ts"
import { goal } from "./world.ts"

const bare: WebShopOptions = { detail: "short", size: 40, resultsPerPage: 3, rules: false, thinking: "off", history: 1 }
const turn = (text: string, action: string): PastStep => ({
  observation: { text, anchor: text },
  completion: "",
  action,
})

describe("webshop", () => {
  it.each([
    {},
    bare,
    { ...bare, admissible: false, reward: "score", anchor: "state" },
    { thinking: "optional", history: "all" },
  ] as WebShopOptions[])("keeps the contract of environments with %j", async (options) => {
    const actions = ["search[soft lamp]", "click[next >]", "click[p1]", "nonsense"]
    await checkEnvironment(await webshop(options), { actions })
  })

  it("shows quoted texts after the instruction, also as the anchor state, and clicks as actions", async () => {
    const environment = await webshop(bare)
    const [task] = take(environment, "train", 1)
    const episode = await start(environment, task!)
    expect(episode.first).toEqual({ text: "'Search'", anchor: "'Search'", actions: [] })
    const { observation } = await episode.step(`search[${task!.query}]`)
    expect(observation.text).toMatch(
      /^'Back to Search' \[SEP\] 'Page 1 \(Total results: \d+\)' \[SEP\] 'Next >' \[SEP\] 'P\d+' \[SEP\] '/,
    )
    expect(observation.anchor).toBe(observation.text)
    expect(observation.text).not.toContain(task!.instruction)
    expect(observation.actions?.slice(0, 2)).toEqual(["click[back to search]", "click[next >]"])
    const item = await episode.step(observation.actions![2]!)
    expect(item.observation.text.split(" [SEP] ").at(-1)).toBe("'Buy Now'")
    const done = await episode.step("click[buy now]")
    expect(done.terminated).toBe(true)
    expect(done.observation.text).toMatch(/^Thank you for shopping with us! \[SEP\] Your code:/)
    expect(done.observation.actions).toEqual([])
  })

  it("can include selected options in the anchor state, never in the text", async () => {
    const wide: WebShopOptions = { ...bare, maxSteps: 50 }
    const [page, state] = [await webshop(wide), await webshop({ ...wide, anchor: "state" })]
    const task = take(page, "train", 50).find(({ options }) => Object.keys(options).length === 2)!
    const open = [`search[${task.name}]`, `click[${task.asin.toLowerCase()}]`]
    const anchors = async (environment: typeof page, ...clicks: string[]) => {
      const episode = await start(environment, task)
      let { observation } = await episode.step(open[0]!)
      for (const click of [open[1]!, ...clicks.map((name) => `click[${name}]`)])
        observation = (await episode.step(click)).observation
      expect(observation.text).not.toContain("\n")
      if (environment === page || clicks.length === 0) expect(observation.anchor).toBe(observation.text)
      return observation.anchor
    }
    const [plain, red] = [await anchors(state), await anchors(state, "red")]
    expect(red).toBe(`${plain}\n["color","red"]`)
    expect(await anchors(state, "blue")).not.toBe(red)
    expect(await anchors(state, "blue", "red")).toBe(red)
    expect(await anchors(state, "red", "small")).toBe(await anchors(state, "small", "red"))
    expect(await anchors(state, "red", "description")).not.toBe(await anchors(state, "description"))
    expect(await anchors(state, "red", "description", "< prev")).toBe(red)
    expect(await anchors(state, "red", "< prev")).not.toContain('red"]')
    // As in the reference, all of these are one.
    for (const clicks of [["red"], ["blue", "small"], ["description", "< prev"]])
      expect(await anchors(page, ...clicks)).toBe(plain)
  })

  it("rewards a perfect purchase by 10, others by 0 or by their score", async () => {
    for (const reward of ["success", "score"] as const) {
      const environment = await webshop({ ...bare, reward })
      const task = take(environment, "train", 50).find(({ options }) => Object.keys(options).length === 2)!
      const { history } = await playExpert(environment, task)
      for (const skipped of [0, 1]) {
        const episode = await start(environment, task)
        const actions = history.map(({ action }) => action)
        if (skipped) actions.splice(2, 1)
        const results = []
        for (const action of actions) results.push(await episode.step(action))
        for (const { reward, metrics } of results.slice(0, -1))
          expect([reward, metrics]).toEqual([0, { success: 0, score: 0 }])
        const wishes = task.attributes.length + 3
        const score = skipped ? (wishes - 1) / wishes : 1
        const last = results.at(-1)!
        expect(last.metrics).toEqual({ success: 1 - skipped, score })
        expect(last.reward).toBe(reward === "score" ? 10 * score : 10 * (1 - skipped))
      }
    }
  })

  it("truncates the episode, except on the step that buys", async () => {
    const environment = await webshop({ ...bare, maxSteps: 2 })
    const [task] = take(environment, "train", 1)
    const episode = await start(environment, task!)
    expect(await episode.step("anything")).toMatchObject({ reward: 0, terminated: false, truncated: false })
    expect(await episode.step("")).toMatchObject({
      terminated: false,
      truncated: true,
      metrics: { success: 0, score: 0 },
    })
    await expect(episode.step("x")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    const enough = await webshop({ ...bare, maxSteps: 4 })
    const single = take(enough, "train", 50).find(({ options }) => Object.keys(options).length === 1)!
    const { history } = await playExpert(enough, single)
    expect(history).toHaveLength(4)
    const last = await start(enough, single)
    for (const { action } of history.slice(0, 3)) await last.step(action)
    expect(await last.step(history[3]!.action)).toMatchObject({ reward: 10, terminated: true, truncated: false })
  })

  it("rejects disposed episodes, aborted signals and broken tasks", async () => {
    const environment = await webshop(bare)
    const episode = await start(environment, goal())
    await episode[Symbol.asyncDispose]?.()
    await expect(episode.step("x")).rejects.toMatchObject({ code: "DISPOSED" })
    await expect(start(environment, goal(), AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough")
    const { instruction: _, ...broken } = goal()
    for (const task of [
      undefined,
      null,
      "x",
      {},
      broken,
      goal({ attributes: [] }),
      goal({ options: [1] as unknown as string[] }),
    ]) {
      await expect(start(environment, task as never)).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    }
    await expect(webshop({ signal: AbortSignal.abort(new Error("no more")) })).rejects.toThrow("no more")
  })

  it("handles hostile actions", async () => {
    const environment = await webshop(bare)
    const hostile = [
      ...[
        "__proto__",
        "constructor",
        "toString",
        "click[__proto__]",
        "search[__proto__ constructor]",
        "search[<a> __proto__]",
      ],
      ...[
        "click[hasownproperty]",
        "search[\ud800]",
        "search[\0]",
        `search[${"soft ".repeat(50_000)}]`,
        "[".repeat(500_000),
      ],
      ...[
        `${"search[".repeat(100_000)}]`,
        `click[${"a".repeat(500_000)}]`,
        "search[(a+)+$ .* \\]",
        "click[buy now]",
        "search[🛒]",
      ],
    ]
    const long = await webshop({ ...bare, maxSteps: 100 })
    const episode = await start(long, take(environment, "test", 1)[0]!)
    for (const action of hostile) {
      const { terminated, observation } = await episode.step(action)
      expect(terminated).toBe(false)
      expect(observation.text).toMatch(/^'(Search|Back to Search)'/)
    }
  })

  it.each([
    [{ data: 3 }, "data must be a non-empty string"],
    [{ size: 9 }, "size must be an integer from 10"],
    [{ detail: "long" }, 'detail must be "full" or "short"'],
    [{ resultsPerPage: 0 }, "resultsPerPage"],
    [{ reward: "dense" }, 'reward must be "success" or "score"'],
    [{ nouns: "all" }, "nouns must be a function"],
    [{ human: true }, "human is not an option"],
    [{ goals: "human" }, "give data or products too"],
    [{ attributes: "a.json" }, "give data or products too"],
    [{ products: "a.json" }, "products needs attributes"],
    [{ anchor: "prompt" }, 'anchor must be "page" or "state"'],
    [{ signal: 1 }, "signal must be an AbortSignal"],
    [{ data: "/nowhere", size: 300 }, "size is for the generated catalogue; omit it if data or products is given"],
    [{ data: "/nowhere", detail: "short" }, "detail is for the generated catalogue"],
    [{ products: "a.json", attributes: "b.json", catalogueSeed: 2 }, "catalogueSeed is for the generated catalogue"],
    [{ data: "/nowhere", humanGoals: "h.json" }, 'humanGoals is for goals: "human"'],
    [{ data: "/nowhere", products: "a.json", attributes: "b.json" }, "data is not used"],
    [{ products: "a.json", attributes: "b.json", goals: "human" }, "needs humanGoals"],
  ])("rejects the options %j", async (options, message) => {
    await expect(webshop(options as WebShopOptions)).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining(message),
    })
  })

  it("reports a missing catalogue", async () => {
    await expect(webshop({ data: "/nowhere" })).rejects.toMatchObject({
      code: "BAD_DATA",
      message: /omit data to use the generated catalogue/,
    })
    const files = { products: "/nowhere/p.json", attributes: "/nowhere/a.json" }
    await expect(webshop(files)).rejects.toMatchObject({ code: "BAD_DATA", message: /p\.json cannot be read/ })
  })
})

describe("prompts of webshop", () => {
  const now = {
    text: "'Back to Search' [SEP] 'Next >'",
    anchor: "",
    actions: ["click[back to search]", "click[next >]"],
  }

  it("contain role, task, history, page, actions and the format of completions", async () => {
    const environment = await webshop()
    const [message] = environment.prompt(goal(), [turn("'a'", "x"), turn("'b'", "y"), turn("'c'", "z")], now)
    const { content, role } = message!
    const parts = [
      "You are shopping in WebShop",
      "The customer says: a weather proof lamp",
      "Steps taken so far: 3.",
      "[Observation 2: ''b'', Action 2: 'y']\n[Observation 3: ''c'', Action 3: 'z']",
      "Step 4. The page now: 'Back to Search' [SEP] 'Next >'",
      "[\n'click[back to search]',\n'click[next >]'\n]",
      "<think> </think>",
      "<action> </action>",
    ]
    expect(role).toBe("user")
    expect(parts.map((part) => content.indexOf(part))).toEqual(
      parts.map((part) => content.indexOf(part)).sort((a, b) => a - b),
    )
    for (const part of parts) expect(content).toContain(part)
    expect(content).not.toContain("'a'")
    const [first] = environment.prompt(goal(), [], { text: "'Search'", anchor: "", actions: [] })
    expect(first!.content).toContain("[\n'search[<words to look for>]'\n]")
    expect(first!.content).not.toContain("Steps taken")
  })

  it("omit the history above 13,000 characters", async () => {
    const environment = await webshop({ admissible: false, thinking: "off" })
    const text = (length: number) => environment.prompt(goal(), [turn("p".repeat(length), "x")], now)[0]!.content
    const room = 13_000 - text(0).length
    expect(text(room)).toHaveLength(13_000)
    expect(text(room)).toContain("pppp")
    expect(text(room + 1)).not.toContain("pppp")
    expect(text(room + 1)).not.toContain("Steps taken")
    expect(text(0)).not.toContain("click[next >]'")
    expect(text(0)).not.toContain("<think>")
  })

  it("are minimal without rules", async () => {
    const history = [turn("'a'", "x"), turn("'b'", "y")]
    const content = async (options: WebShopOptions) => (await webshop(options)).prompt(goal(), history, now)[0]!.content
    expect(await content({ ...bare, admissible: false })).toBe(`a weather proof lamp\n\ny\n\n${now.text}`)
    expect(await content(bare)).toBe(`a weather proof lamp\n\ny\n\n${now.text}\n\nclick[back to search]\nclick[next >]`)
    expect(await content({ ...bare, admissible: false, memory: (turns) => `${turns.length} steps` })).toBe(
      `a weather proof lamp\n\n2 steps\n\n${now.text}`,
    )
  })

  it("and parsing can be replaced", async () => {
    const environment = await webshop({
      ...bare,
      prompt: () => [{ role: "user", content: "mine" }],
      parse: () => ({ action: "own", valid: true }),
    })
    expect(environment.prompt(goal(), [], now)[0]!.content).toBe("mine")
    expect(environment.parse("", now)).toEqual({ action: "own", valid: true })
  })

  it("expect tags; of other completions the last 20 characters are used", async () => {
    const { parse } = await webshop()
    expect(parse("<think>t</think><action> Search[Soft Lamp] </action>", now)).toEqual({
      action: "search[soft lamp]",
      valid: true,
    })
    expect(parse("<action>click[p1]</action>", now)).toEqual({ action: "click[p1]", valid: false })
    expect(parse("I would now click on click[back to search]", now)).toEqual({
      action: "lick[back to search]",
      valid: false,
    })
  })
})

describe("the expert of webshop", () => {
  it("succeeds from any page, also after wrong steps", async () => {
    const environment = await webshop({ ...bare, maxSteps: 30 })
    const task = take(environment, "train", 50).find(({ options }) => Object.keys(options).length === 2)!
    const wrong = (task.options as Record<string, string>).color === "red" ? "blue" : "red"
    const own = `click[${task.asin.toLowerCase()}]`
    const detours = [
      ["search[zzz]", "click[next >]"],
      ["search[lamp]", "click[next >]", "click[back to search]"],
      [`search[${task.name}]`, own, `click[${wrong}]`, "click[description]"],
      [`search[${task.name}]`, own, "click[small]", "click[large]", `click[${wrong}]`],
      [`search[${task.name}]`, own, "click[red]", "click[blue]", "click[green]", "click[small]", "click[< prev]"],
    ]
    for (const detour of detours) {
      const episode = await start(environment, task)
      const expert = environment.expert!(task)
      const history: PastStep[] = []
      let observation = episode.first
      for (let step = 0; ; step++) {
        const completion = detour[step] ?? expert.complete(observation, history)!
        const action = detour[step] ?? environment.parse(completion, observation).action
        const result = await episode.step(action)
        history.push({ observation, completion, action })
        observation = result.observation
        if (!result.terminated && !result.truncated) continue
        expect(result.metrics?.success).toBe(1)
        expect(expert.complete(observation, history)).toBeUndefined()
        break
      }
    }
  })

  it("turns pages if necessary", async () => {
    const environment = await webshop({ detail: "short", size: 3000, resultsPerPage: 1 })
    const plays = await Promise.all(take(environment, "train", 300).map((task) => playExpert(environment, task)))
    const turned = plays.filter(({ history }) => history.some(({ action }) => action === "click[next >]"))
    expect(turned.length).toBeGreaterThan(0)
    expect(turned.some(({ success }) => success === 1)).toBe(true)
  })

  it("gives up on missing products", async () => {
    const environment = await webshop(bare)
    const episode = await start(environment, goal())
    expect(environment.expert!(goal()).complete(episode.first, [])).toBeUndefined()
  })
})

describe.skipIf(!present)(`webshop on the real small catalogue${reason}`, () => {
  it("fulfils the environment contract, for both kinds of goals", async () => {
    for (const goals of ["synthetic", "human"] as const) {
      await checkEnvironment(await webshop({ data: folder, goals }), { actions: ["search[lamp]", "click[next >]"] })
    }
  })

  it("has 500 test goals, none of them in training", async () => {
    const environment = await webshop({ data: folder })
    const test = take(environment, "test", 1000)
    expect(test).toHaveLength(500)
    const texts = new Set(test.map(({ instruction }) => instruction))
    const train = take(environment, "train", 10_000)
    expect(train.filter(({ instruction }) => texts.has(instruction))).toEqual([])
    expect(new Set(train.map(({ instruction }) => instruction)).size).toBeGreaterThan(4000)
  })

  // Goals that WebShop's comparison of options cannot meet at all (`rectangular` reads as the colour tan): 458 of 6,910.
  it("is solved by the expert if its choice of product and options allows it", async () => {
    const environment = await webshop({ data: folder })
    let [solved, steps] = [0, 0]
    const tasks = take(environment, "test", 500)
    for (const task of tasks) {
      const play = await playExpert(environment, task)
      expect(play.valid).toBe(true)
      solved += play.success
      steps = Math.max(steps, play.steps)
      // Product, attributes and price are always right.
      expect(play.score).toBeGreaterThanOrEqual(
        (task.attributes.length + 1) / (task.attributes.length + Object.keys(task.options).length + 1),
      )
    }
    expect(solved / tasks.length).toBeGreaterThan(0.92)
    expect(steps).toBeLessThanOrEqual(8)
  })
})
