import { existsSync, readFileSync } from "node:fs"
import { isDeepStrictEqual } from "node:util"
import { describe, expect, it } from "vitest"
import { WebSocket } from "ws"
import { openenv } from "../../../src/environment/openenv/openenv.ts"
import { Random } from "../../../src/util/random.ts"
import { actionSchema, startServer } from "./server.ts"

/** A conversation with the real OpenEnv server, as recorded. */
const file = new URL("../../../../shared/data/openenv/exchange.txt", import.meta.url)
const present = existsSync(file)
const reason = present ? "" : " (skipped: ../shared/data/openenv/exchange.txt is not there)"
const lines = present ? readFileSync(file, "utf8").trim().split("\n") : []
const frames = (sign: string) =>
  lines.filter((line) => line.startsWith(`${sign} `)).map((line) => JSON.parse(line.slice(2)))
const exchange = frames(">").map((sent, i) => ({ sent, answer: frames("<")[i] }))

describe.skipIf(!present)(`the recorded exchange${reason}`, () => {
  it("is complete", () => {
    expect(exchange.map(({ sent }) => sent.type)).toEqual(["reset", "step", "state", "step", "step", "mcp", "zzz"])
  })

  it("equals the answers of the test server", async () => {
    const server = await startServer()
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/ws`)
    await new Promise((resolve) => socket.once("open", resolve))
    for (const { sent, answer } of exchange) {
      const got = new Promise((resolve) => socket.once("message", (text) => resolve(JSON.parse(text.toString()))))
      socket.send(JSON.stringify(sent))
      expect(await got).toEqual(answer)
    }
    socket.terminate()
    const schema = lines.find((line) => line.startsWith("GET /schema"))!
    expect(schema).toContain(`200 {"action":${JSON.stringify(actionSchema)},`)
    const first = lines.find((line) => line.startsWith("conn 0 <"))!
    expect(JSON.parse(first.slice(9)).data.observation.text).toBe("start seed=None")
    await server.stop()
  })

  it("is reproduced by the client", async () => {
    const server = await startServer({
      answer: (message) => exchange.find(({ sent }) => isDeepStrictEqual(sent, message))?.answer ?? null,
    })
    const play = async (actionField: string | undefined, actions: readonly string[]) => {
      const environment = openenv({ url: server.url, messageTimeout: 5, ...(actionField && { actionField }) })
      const context = { signal: new AbortController().signal, random: new Random(1) }
      const episode = await environment.start({ seed: 42 }, context)
      const results: unknown[] = [episode.first]
      try {
        for (const action of actions) results.push(await episode.step(action))
      } finally {
        await episode[Symbol.asyncDispose]?.()
      }
      return results
    }
    const actions = ["go", "stop"]
    expect(await play(undefined, actions)).toEqual([
      { text: "start seed=42", anchor: "start seed=42", actions },
      {
        observation: { text: "you go", anchor: "you go", actions },
        reward: 0,
        terminated: false,
        truncated: false,
        metrics: { success: 0, "rejected-actions": 0 },
      },
      {
        observation: { text: "you stop", anchor: "you stop", actions },
        reward: 1,
        terminated: true,
        truncated: false,
        metrics: { success: 1, "rejected-actions": 0 },
      },
    ])
    const environment = openenv({ url: server.url, act: () => ({ nope: 1 }) })
    const episode = await environment.start(
      { seed: 42 },
      { signal: new AbortController().signal, random: new Random(1) },
    )
    await expect(episode.step("x")).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /command: missing; nope: extra_forbidden/,
    })
    await episode[Symbol.asyncDispose]?.()
    await server.stop()
  })
})
