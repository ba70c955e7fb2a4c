import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it, vi } from "vitest"
import type { Environment, PastStep, StepResult } from "../../../src/environment/environment.ts"
import { httpRetriever } from "../../../src/environment/search/http-retriever.ts"
import { informationOf } from "../../../src/environment/search/information.ts"
import { type SearchOptions, type SearchTask, search } from "../../../src/environment/search/search.ts"
import { checkEnvironment } from "../../../src/rollout/check-environment.ts"
import { rolloutDefaults } from "../../../src/rollout/options.ts"
import { Random } from "../../../src/util/random.ts"
import { fakeRetriever, json } from "./fake-retriever.ts"

vi.mock("../../../src/environment/search/http-retriever.ts", { spy: true })

const folder = mkdtempSync(join(tmpdir(), "gigpo-search-"))
afterAll(() => rmSync(folder, { recursive: true }))

function write(name: string, ...lines: object[]): string {
  const path = join(folder, name)
  writeFileSync(path, lines.map((line) => JSON.stringify(line)).join("\n"))
  return path
}

const corpus = write(
  "corpus.jsonl",
  { id: "0", contents: '"Velan Bay"\nThe mayor of Velan Bay is Zoë Ordo.' },
  { id: "1", contents: '"Ordo Beck"\nA river.' },
)
const task: SearchTask = { id: "q", question: "Who is the mayor of Velan Bay?", answers: ["Zoë Ordo", "Zoe Ordo"] }
const questions = write(
  "questions.jsonl",
  ...Array.from({ length: 30 }, (_, i) => ({
    id: i,
    question: `${task.question} (${i})`,
    golden_answers: task.answers,
  })),
)

function start(environment: Environment<SearchTask>, what = task, signal = new AbortController().signal) {
  return environment.start(what, { signal, random: new Random(1) })
}

/** Lets the expert play, and gives the last result. */
async function playExpert(environment: Environment<SearchTask>, what: SearchTask): Promise<StepResult | undefined> {
  const episode = await start(environment, what)
  const expert = environment.expert!(what)
  const history: PastStep[] = []
  let now = episode.first
  for (;;) {
    const completion = expert.complete(now, history)
    if (completion === undefined) return undefined
    const { action, valid } = environment.parse(completion, now)
    expect(valid).toBe(true)
    const result = await episode.step(action)
    if (result.terminated || result.truncated) return result
    history.push({ observation: now, completion, action })
    now = result.observation
  }
}

it("reports success additionally for the data set of a question", async () => {
  const environment = await search({ questions, corpus })
  for (const [source, more] of [
    ["nq", { "success/nq": 1 }],
    ["a\n/ b", { "success/a-b": 1 }],
    ["\n", {}],
  ] as const) {
    const episode = await start(environment, { ...task, source })
    const { metrics } = await episode.step("<answer>Zoe Ordo</answer>")
    expect(metrics).toEqual({ success: 1, ...more, searches: 0, retrieverFailures: 0 })
  }
  const world = await search()
  const names = new Set<string>()
  let count = 0
  for (const one of world.tasks("train", new Random(1))) {
    const { metrics } = await (await start(world, one)).step("<answer>?</answer>")
    for (const name of Object.keys(metrics!)) names.add(name)
    if (++count === 30) break
  }
  expect([...names].filter((name) => name.startsWith("success/")).sort()).toEqual([
    "success/world-1-hop",
    "success/world-2-hop",
  ])
})

describe("search", () => {
  it.each([
    {},
    { entities: 60, hops: 1, topk: 1, rules: false, thinking: "off" },
    { thinking: "required", hops: 2, history: "all", match: "subem" },
    { questions, corpus },
  ] as SearchOptions[])("keeps the contract of environments with %j", async (options) => {
    await checkEnvironment(await search(options))
    await checkEnvironment(await search(options), {
      actions: ["<search>velan</search>", "", "<search></search>", "<search><answer>x</answer></search>"],
    })
  })

  it("shows results like verl-agent, and rewards the answer", async () => {
    const episode = await start(await search({ questions, corpus }))
    expect(episode.first).toEqual({ text: task.question, anchor: task.question })
    const text =
      '<information>{"result": "Doc 1: \\"Velan Bay\\"\\nThe mayor of Velan Bay is Zo\\u00eb Ordo.\\nDoc 2: \\"Ordo Beck\\"\\nA river.\\n"}</information>'
    expect(await episode.step("<search>velan ordo</search>")).toEqual({
      observation: { text, anchor: text },
      reward: 0,
      terminated: false,
      truncated: false,
      metrics: { success: 0, searches: 1, retrieverFailures: 0 },
    })
    expect(await episode.step("<answer>the zoë ordo!</answer>")).toEqual({
      observation: { text: "", anchor: "" },
      reward: 1,
      terminated: true,
      truncated: false,
      metrics: { success: 1, searches: 1, retrieverFailures: 0 },
    })
    await expect(episode.step("<answer>a</answer>")).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: /episode has ended/,
    })
  })

  it("reports that nothing was found, and shows nothing after a completion without search and answer", async () => {
    const episode = await start(await search({ questions, corpus }))
    const none = '<information>{"result": "No search results found."}</information>'
    expect((await episode.step("<search>the</search>")).observation).toEqual({ text: none, anchor: none })
    const { observation, metrics } = await episode.step("")
    expect([observation, metrics]).toEqual([
      { text: "", anchor: "" },
      { success: 0, searches: 1, retrieverFailures: 0 },
    ])
  })

  it("shows topk passages", async () => {
    const episode = await start(await search({ questions, corpus, topk: 1 }))
    expect((await episode.step("<search>velan ordo</search>")).observation.text.match(/Doc \d/g)).toEqual(["Doc 1"])
  })

  it("truncates the episode at the last step, in which a search is not executed but an answer counts", async () => {
    const environment = await search({ questions, corpus, maxSteps: 2 })
    const late = await start(environment)
    await late.step("")
    expect(await late.step("<search>velan</search>")).toEqual({
      observation: { text: "", anchor: "" },
      reward: 0,
      terminated: false,
      truncated: true,
      metrics: { success: 0, searches: 0, retrieverFailures: 0 },
    })
    const inTime = await start(environment)
    await inTime.step("<search>velan</search>")
    expect(await inTime.step("<answer>Zoe Ordo</answer>")).toMatchObject({
      reward: 1,
      terminated: true,
      truncated: false,
    })
  })

  it("uses the last answer block, even inside a query, like verl-agent", async () => {
    const environment = await search({ questions, corpus })
    for (const [action, reward] of [
      ["<search><answer>Zoe Ordo</answer></search>", 1],
      ["<answer>Mara</answer>", 0],
      ["<answer></answer>", 0],
      ["<answer>It is Zoe Ordo</answer>", 0],
    ] as const)
      expect(await (await start(environment)).step(action)).toMatchObject({ reward, terminated: true })
    const loose = await search({ questions, corpus, match: "subem" })
    expect(await (await start(loose)).step("<answer>It is Zoe Ordo</answer>")).toMatchObject({ reward: 1 })
  })

  it("rejects disposed episodes, aborted signals and invalid tasks", async () => {
    const environment = await search({ questions, corpus })
    const episode = await start(environment)
    await episode[Symbol.asyncDispose]?.()
    await expect(episode.step("")).rejects.toMatchObject({ code: "DISPOSED" })
    await expect(start(environment, task, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough")
    const context = { signal: new AbortController().signal, random: new Random(1) }
    for (const none of [{ question: "?" }, undefined, null, "x", { question: "?", answers: [1] }])
      await expect(environment.start(none as unknown as SearchTask, context)).rejects.toMatchObject({
        code: "BAD_ARGUMENT",
      })
  })

  it.each([
    [{ corpus }, "a corpus needs questions"],
    [{ questions }, "questions need corpus or retriever"],
    [{ questions, corpus, retriever: "http://127.0.0.1:1" }, "exclude each other"],
    [{ testQuestions: questions }, "testQuestions needs questions"],
    [{ retriever: "http://127.0.0.1:1" }, "retriever needs questions; give a file of questions"],
    [{ questions, corpus, entities: 60 }, "entities is for the embedded world"],
    [{ questions, corpus, hops: 1 }, "hops is for the embedded world"],
    [{ questions, corpus, worldSeed: 1 }, "worldSeed is for the embedded world"],
    [{ requestForm: "batch" }, "requestForm is for servers; give a retriever"],
    [{ questions, corpus, retrieverTimeout: 1 }, "retrieverTimeout is for servers"],
    [{ retrieverAttempts: 1 }, "retrieverAttempts is for servers"],
    [{ retrieverDelay: 1 }, "retrieverDelay is for servers"],
    [{ onRetrieverFailure: "fail" }, "onRetrieverFailure is for servers"],
    [{ signal: {} }, "signal must be an AbortSignal"],
    [{ questions, retriever: "http://me:secret@127.0.0.1" }, "without user name and password"],
    [{ retriever: "127.0.0.1:8000" }, "retriever must be an address such as http"],
    [{ retriever: [] }, "retriever must be an address"],
    [{ retriever: ["http://127.0.0.1:1", "ftp://x"] }, "retriever must be an address"],
    [{ topk: 0 }, "topk must be an integer from 1 to 100, not 0"],
    [{ hops: 3 }, 'hops must be 1 or 2 or "mixed"'],
    [{ match: "f1" }, 'match must be "em" or "subem"'],
    [{ requestForm: "list" }, "requestForm must be"],
    [{ onRetrieverFailure: "ignore" }, "onRetrieverFailure must be"],
    [{ retrieverTimeout: 0 }, "retrieverTimeout must be a number"],
    [{ retrieverAttempts: 0 }, "retrieverAttempts must be an integer"],
    [{ entities: 10 }, "entities must be an integer from 60"],
    [{ worlds: 0 }, "worlds must be an integer from 1 to 1000"],
    [{ worlds: 5 }, "worlds must be 1, or at least 6"],
    [{ worlds: 1000, entities: 101 }, "worlds × entities may be at most 100000"],
    [{ questions, corpus, worlds: 6 }, "worlds is for the embedded world"],
    [{ history: -1 }, "history must be"],
    [{ top_k: 3 }, "top_k is not an option; did you mean topk?"],
  ])("rejects the options %j", async (options, message) => {
    await expect(search(options as SearchOptions)).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining(message),
    })
  })

  it("passes on errors of its files", async () => {
    const missing = join(folder, "missing.jsonl")
    await expect(search({ questions: missing, corpus })).rejects.toMatchObject({ code: "BAD_DATA" })
    await expect(search({ questions, corpus: missing })).rejects.toMatchObject({ code: "BAD_DATA" })
    await expect(search({ questions, corpus: write("empty.jsonl") })).rejects.toMatchObject({ code: "BAD_DATA" })
  })
})

describe("opening search", () => {
  it("stops when the signal is aborted, during any read", async () => {
    const lines = (count: number, line: object) => Array.from({ length: count }, () => line)
    const many = write("many.jsonl", ...lines(100_000, { contents: "over and over again", id: 1 }))
    const asked = write("many-questions.jsonl", ...lines(100_000, { question: "Who?", golden_answers: ["a"] }))
    for (const options of [{ entities: 10_000 }, { questions: asked, corpus }, { questions, corpus: many }]) {
      const controller = new AbortController()
      const opening = search({ ...options, signal: controller.signal })
      setTimeout(() => controller.abort(new Error("enough")), 5)
      await expect(opening).rejects.toThrow("enough")
      await expect(search({ ...options, signal: controller.signal })).rejects.toThrow("enough")
    }
  })

  it("rejects files too small to be split, and equal training and test files", async () => {
    const one = write("one.jsonl", { question: "Who?", golden_answers: ["a"] })
    await expect(search({ questions: one, corpus })).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringMatching(/one\.jsonl has 1 question, too few .* give a file of .*testQuestions/),
    })
    await search({ questions: one, testQuestions: questions, corpus })
    const link = join(folder, "link.jsonl")
    symlinkSync(questions, link)
    for (const testQuestions of [questions, link]) {
      await expect(search({ questions, testQuestions, corpus })).rejects.toMatchObject({
        code: "BAD_CONFIG",
        message: expect.stringContaining("the same file"),
      })
    }
  })
})

describe("tasks of search", () => {
  const ids = (environment: Environment<SearchTask>, split: "train" | "test", count: number) => {
    const found: string[] = []
    for (const { id } of environment.tasks(split, new Random(1))) if (found.push(id) === count) break
    return found
  }

  it("hold out part of a file for the test, unless there is a test file", async () => {
    const held = await search({ questions, corpus })
    const test = ids(held, "test", 100)
    expect(test.length).toBeGreaterThan(0)
    expect(new Set([...test, ...ids(held, "train", 100)]).size).toBe(30)
    expect(ids(held, "train", 100).filter((id) => test.includes(id))).toEqual([])

    const testQuestions = write("test.jsonl", { id: "t", question: "?", golden_answers: ["a"] })
    const apart = await search({ questions, testQuestions, corpus })
    expect(ids(apart, "test", 100)).toEqual(["t"])
    expect(new Set(ids(apart, "train", 100)).size).toBe(30)
  })
})

describe("expert of search", () => {
  it.each([
    {},
    { entities: 60, hops: 1, topk: 1 },
    { entities: 60, worlds: 12 },
    { hops: 2, topk: 1, thinking: "required" },
  ] as SearchOptions[])("answers every question about the embedded world with %j", async (options) => {
    const environment = await search(options)
    for (const split of ["train", "test"] as const) {
      let count = 0
      for (const question of environment.tasks(split, new Random(1))) {
        const result = await playExpert(environment, question)
        // One search a hop, unless a search of several passages shows the next one too.
        const { searches } = result!.metrics!
        const needed = options.topk === 1 ? question.path!.length : 1
        expect([question.question, result!.reward]).toEqual([question.question, 1])
        expect(searches).toBeGreaterThanOrEqual(needed)
        expect(searches).toBeLessThanOrEqual(question.path!.length)
        if (++count === 200) break
      }
      expect(count).toBeGreaterThan(30)
    }
  })

  it("reads its answers: with passages of another world it gives up", async () => {
    const environment = await search({ entities: 60 })
    const [first] = environment.tasks("train", new Random(1))
    const expert = environment.expert!(first!)
    const observation = { text: first!.question, anchor: first!.question }
    const completion = expert.complete(observation, [])!
    expect(completion).toContain(`<search> ${first!.subject} </search>`)
    const lie = informationOf('Doc 1: "Nobody"\nNothing.\n')
    const history = [{ observation, completion, action: environment.parse(completion, observation).action }]
    expect(expert.complete({ text: lie, anchor: lie }, history)).toBeUndefined()
  })

  it("uses the answers of files", async () => {
    const environment = await search({ questions, corpus })
    expect(await playExpert(environment, task)).toMatchObject({ reward: 1, metrics: { searches: 1 } })
  })
})

describe("search with a server", () => {
  const quick: SearchOptions = { retrieverAttempts: 2, retrieverDelay: 0 }
  type Respond = Parameters<typeof fakeRetriever>[0]
  /** Fit when the environment is opened, then as told. */
  const later = (respond: Respond): Respond => {
    return (response, number, request) =>
      number === 1 ? json(response, { result: [[]] }) : respond(response, number - 1, request)
  }

  it("distributes episodes over several servers, in the configured format", async () => {
    const answer = { result: [[{ document: { contents: "found" }, score: 1 }]] }
    const servers = [
      await fakeRetriever((response) => json(response, answer)),
      await fakeRetriever((response) => json(response, answer)),
    ]
    // Without a path, the customary one is taken.
    const retriever = servers.map(({ url }) => url.replace("/retrieve", ""))
    const environment = await search({ questions, retriever, requestForm: "batch" })
    for (let i = 0; i < 4; i++) {
      const episode = await start(environment)
      for (let step = 0; step <= i; step++) await episode.step(`<search>q${i}</search>`)
    }
    const asked = servers.map(({ requests }) =>
      requests.map((request) => (request as { queries: string[] }).queries[0]),
    )
    expect(asked).toEqual([
      ["test", "q0", "q2", "q2", "q2"],
      ["test", "q1", "q1", "q3", "q3", "q3"],
    ])
    for (const server of servers) await server.close()
  })

  it.each([
    ["down", undefined, "The search failed: the retriever cannot be reached."],
    ["slow", () => {}, "The search failed: the retriever did not answer within 0.2 s."],
    [
      "nonsense",
      (response) => json(response, "?"),
      "The search failed: the retriever answered with something that is not JSON.",
    ],
    ["404", (response) => json(response, {}, 404), "The search failed: the retriever answered with HTTP status 404."],
  ] as [string, Respond | undefined, string][])(
    "reports a server that is %s as the result, and counts it",
    async (kind, respond, sentence) => {
      const more = kind === "slow" ? { retrieverTimeout: 0.2 } : {}
      const server = await fakeRetriever(later(respond ?? (() => {})))
      const environment = await search({ questions, retriever: server.url, ...quick, ...more })
      if (!respond) await server.close()
      const episode = await start(environment)
      const text = `<information>{"result": "${sentence}"}</information>`
      expect(await episode.step("<search>q</search>")).toMatchObject({
        observation: { text, anchor: text },
        metrics: { success: 0, searches: 1, retrieverFailures: 1 },
      })
      expect(await episode.step("<answer>Zoe Ordo</answer>")).toMatchObject({
        reward: 1,
        metrics: { retrieverFailures: 1 },
      })
      if (respond) await server.close()
    },
  )

  it("fails the episode if configured", async () => {
    const server = await fakeRetriever(later((response) => json(response, {}, 404)))
    const episode = await start(
      await search({ questions, retriever: server.url, onRetrieverFailure: "fail", ...quick }),
    )
    await expect(episode.step("<search>q</search>")).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: `search: the retriever ${server.url} answered with HTTP status 404; start the server or correct the option retriever.`,
      cause: expect.any(Error),
    })
    await server.close()
  })

  it("stops waiting when the signal is aborted", async () => {
    const controller = new AbortController()
    const server = await fakeRetriever(later(() => controller.abort(new Error("enough"))))
    const episode = await start(await search({ questions, retriever: server.url }), task, controller.signal)
    await expect(episode.step("<search>q</search>")).rejects.toThrow("enough")
    await expect(episode.step("")).rejects.toThrow("enough")
    await server.close()
  })

  it("is rejected if a server is down or not a retriever, after one request", async () => {
    const fit = await fakeRetriever((response) => json(response, { result: [[]] }))
    const gone = await fakeRetriever(() => {})
    await gone.close()
    const busy = await fakeRetriever((response) => json(response, {}, 503))
    for (const [{ url }, reason] of [
      [gone, "cannot be reached (ECONNREFUSED)"],
      [busy, "answered with HTTP status 503"],
    ] as const) {
      const opening = search({ questions, retriever: [fit.url, url], onRetrieverFailure: "report" })
      await expect(opening).rejects.toMatchObject({
        code: "ENVIRONMENT_FAILED",
        message: `search: the retriever ${url} ${reason}; start the server or correct the option retriever.`,
      })
    }
    expect(busy.requests).toHaveLength(1)
    expect(fit.requests).toEqual(Array(2).fill({ query: "test", topk: 1, return_scores: true }))
    for (const server of [fit, busy]) await server.close()
  })

  it("times out, by default, before the training loop", async () => {
    const client = vi.mocked(httpRetriever)
    const server = await fakeRetriever((response) => json(response, { result: [[]] }))
    await search({ questions, retriever: server.url })
    const { timeout, attempts, delay } = client.mock.lastCall![1]
    const pauses = (delay * attempts * (attempts - 1)) / 2
    expect(attempts).toBeGreaterThan(1)
    expect(attempts * timeout + pauses).toBeLessThan(rolloutDefaults.environmentTimeout)
    await server.close()
  })
})
