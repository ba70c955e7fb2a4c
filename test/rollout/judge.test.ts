import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { afterEach, describe, expect, it, vi } from "vitest"
import type { Episode } from "../../src/rollout/episode.ts"
import { type JudgeOptions, judge } from "../../src/rollout/hooks/judge.ts"
import type { HookContext } from "../../src/rollout/hooks.ts"
import { train } from "../../src/training/train.ts"
import { Random } from "../../src/util/random.ts"
import { tableSetup } from "../training/table-setup.ts"

const context = (): HookContext => ({
  progress: { iteration: 0, iterations: 1 },
  random: new Random(0),
  signal: new AbortController().signal,
})

function played(completions: readonly string[], outcome: Episode["outcome"] = "terminated"): Episode {
  const none = { prompt: new Int32Array(1), completion: new Int32Array(1), logProbs: new Float32Array(1) }
  const steps = completions.map((text, index) => ({
    ...none,
    observation: { text: `room ${index}`, anchor: `${index}` },
    ...{ text, action: text, valid: true, reward: 2, finishReason: "stop" as const, metrics: { depth: index } },
  }))
  return { steps, outcome, return: 2 * steps.length, metrics: { depth: steps.length - 1 } }
}

interface Asked {
  readonly authorization: string | undefined
  readonly path: string
  readonly body: {
    readonly model: string
    readonly temperature: number
    readonly messages: readonly { readonly content: string }[]
  }
}

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const close of closing.splice(0)) await close()
})

/** A server that gives these answers, one after the other, then the last again: a text of the model, or an HTTP status. */
async function serve(
  ...answers: readonly (string | number)[]
): Promise<{ readonly url: string; readonly asked: Asked[] }> {
  const asked: Asked[] = []
  const read = async (request: IncomingMessage) => {
    let text = ""
    for await (const chunk of request) text += String(chunk)
    return JSON.parse(text) as Asked["body"]
  }
  const server = createServer(async (request, response) => {
    const { authorization } = request.headers
    asked.push({ authorization, path: request.url!, body: await read(request) })
    const answer = answers[Math.min(asked.length, answers.length) - 1]!
    response.statusCode = typeof answer === "number" ? answer : 200
    response.end(JSON.stringify({ choices: [{ message: { content: answer } }] }))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closing.push(() => new Promise((resolve) => server.close(() => resolve())))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`, asked }
}

const group = (...episodes: readonly Episode[]) => ({ task: 0, index: 0, episodes })

describe("judge", () => {
  it("gives each episode the score of its attempt at the last step", async () => {
    const { url, asked } = await serve('<think>{so}</think> ```json\n{"scores": [0.25, 1]}\n```')
    const { score } = judge({ url, model: "large", weight: 10, rubric: "Shorter is better." })
    const failed = played(["c"], "failed")
    const [one, two, same, none] = await score!(
      group(played(["a", "b"]), played(["b"]), played(["a", "b"]), failed),
      context(),
    )
    expect([one, two, same].map((episode) => episode!.steps.map(({ reward }) => reward))).toEqual([
      [0, 2.5],
      [10],
      [0, 2.5],
    ])
    expect(one!.steps[1]!.metrics).toEqual({ depth: 1, judge: 0.25 })
    expect(one!.steps[0]!.metrics).toEqual({ depth: 0 })
    expect(one!.metrics).toEqual({ depth: 1, judge: 0.25 })
    expect(none).toBe(failed)
    expect(asked).toHaveLength(1)
    const { path, body } = asked[0]!
    expect([path, body.model, body.temperature]).toEqual(["/v1/chat/completions", "large", 0])
    expect(body.messages[0]!.content).toContain("Shorter is better.")
    expect(body.messages[0]!.content.match(/<attempt [\s\S]*?<\/attempt>/g)).toEqual([
      '<attempt number="1">\n[environment]\nroom 0\n[agent]\na\n[environment]\nroom 1\n[agent]\nb\n</attempt>',
      '<attempt number="2">\n[environment]\nroom 0\n[agent]\nb\n</attempt>',
    ])
  })

  it("adds to the rewards, shortens attempts and asks once about equal groups", async () => {
    const { url, asked } = await serve('{"scores": [0.5]}')
    const { score } = judge({ url, rewards: "add", maxCharacters: 100 })
    for (const _ of [1, 2]) {
      const [found] = await score!(group(played(["x".repeat(500), "end"])), context())
      expect(found!.steps.map(({ reward }) => reward)).toEqual([2, 2.5])
    }
    expect(asked).toHaveLength(1)
    const [attempt] = asked[0]!.body.messages[0]!.content.match(/<attempt [\s\S]*?<\/attempt>/)!
    expect(attempt).toMatch(/x\n\[…\]\nx[\s\S]*\[agent\]\nend\n<\/attempt>$/)
    expect(attempt.length).toBeLessThan(150)
  })

  it("asks again after a failure, and says why there are no scores", async () => {
    const { url, asked } = await serve(503, '{"scores": [0.5, 2]}', '{"scores": [0, 1]}')
    const two = group(played(["a"]), played(["b"]))
    const found = await judge({ url }).score!(two, context())
    expect(found.map(({ steps }) => steps[0]!.reward)).toEqual([0, 1])
    expect(asked).toHaveLength(3)
    const refused = async (more: JudgeOptions, message: RegExp) =>
      await expect(judge({ attempts: 1, ...more }).score!(two, context())).rejects.toThrow(
        expect.objectContaining({ code: "ENGINE_LOST", message: expect.stringMatching(message) }),
      )
    await refused(
      { url: (await serve(401)).url },
      /^The judge at .*\/v1\/ gave no scores in 1 attempts: HTTP status 401\./,
    )
    await refused({ url: (await serve('{"scores": [1]}')).url }, /no list of 2 scores from 0 to 1/)
    await refused({ url: "http://127.0.0.1:9/v1" }, /ECONNREFUSED|bad port/)
  })

  it("sends the key only to this machine, or to the server that it is for", async () => {
    vi.stubEnv("GIGPO_JUDGE_KEY", "secret")
    const { url, asked } = await serve('{"scores": [1]}')
    await judge({ url }).score!(group(played(["a"])), context())
    expect(asked[0]!.authorization).toBe("Bearer secret")
    const sent: (string | null)[] = []
    const elsewhere = vi.spyOn(globalThis, "fetch").mockImplementation(async (_, init) => {
      sent.push(new Headers(init!.headers).get("authorization"))
      return Response.json({ choices: [{ message: { content: '{"scores": [1]}' } }] })
    })
    try {
      for (const named of ["", "https://other.example", "https://judge.example/any"]) {
        vi.stubEnv("GIGPO_JUDGE_URL", named)
        await judge({ url: "https://judge.example/v1" }).score!(group(played(["a"])), context())
      }
    } finally {
      elsewhere.mockRestore()
    }
    expect(sent).toEqual([null, null, "Bearer secret"])
  })

  it("is where a training gets its rewards from", async () => {
    const { url, asked } = await serve('{"scores": [1]}')
    const reports = await train({
      ...tableSetup({ iterations: 1, groups: 1, groupSize: 1 }),
      estimator: { name: "reinforce-plus-plus" },
      rolloutHooks: { name: "judge", url },
    })
    expect(asked).toHaveLength(1)
    expect(reports[0]!.metrics).toMatchObject({ "episode/return": 1, "episode/judge": 1 })
  })

  it("keeps its scores in checkpoints, and asks again where another model judges", async () => {
    const { url, asked } = await serve('{"scores": [0.25, 0.75]}')
    const pair = group(played(["a"]), played(["b"]))
    const first = judge({ url })
    const scored = await first.score!(pair, context())
    const saved = JSON.parse(JSON.stringify(first.state()))
    const second = judge({ url })
    second.restore(saved)
    expect(await second.score!(pair, context())).toEqual(scored)
    expect(second.state()).toEqual(saved)
    expect(asked).toHaveLength(1)
    const other = judge({ url, model: "large" })
    other.restore(saved)
    await other.score!(pair, context())
    expect(asked).toHaveLength(2)
  })

  it("rejects a text without an address", () => {
    expect(() => judge({ url: "judge" })).toThrow(/url is "judge"; give an http or https address/)
  })
})
