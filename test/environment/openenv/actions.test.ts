import { describe, expect, it } from "vitest"
import { openenv } from "../../../src/environment/openenv/openenv.ts"
import { Random } from "../../../src/util/random.ts"
import { actionSchema, error, observation, startServer } from "./server.ts"
import { listen, released, serve, start } from "./setup.ts"

describe("actions that the server rejects", () => {
  const literal = [{ type: "literal_error", loc: ["command"], msg: "Input should be 'go' or 'stop'" }]

  it.each([
    ["VALIDATION_ERROR", "Invalid message", literal, "Invalid message (command: literal_error)"],
    ["EXECUTION_ERROR", "illegal move", undefined, "illegal move"],
  ])("for %s leave the state as it was and are counted", async (code, message, errors, shown) => {
    const server = await serve({
      answer: ({ data }) => (data?.command === "fly" ? error(code, message, errors) : undefined),
    })
    const episode = await start({ url: server.url, maxSteps: 4 })
    const refused = {
      observation: {
        text: `start seed=7\n\nThe action was rejected: ${shown}`,
        anchor: "start seed=7",
        actions: ["go", "stop"],
      },
      reward: 0,
      terminated: false,
      truncated: false,
    }
    expect(await episode.step("fly")).toEqual({ ...refused, metrics: { success: 0, "rejected-actions": 1 } })
    expect(await episode.step("fly")).toEqual({ ...refused, metrics: { success: 0, "rejected-actions": 2 } })
    expect(await episode.step("go")).toMatchObject({
      observation: { text: "you go" },
      metrics: { "rejected-actions": 2 },
    })
    expect(await episode.step("fly")).toMatchObject({ truncated: true, metrics: { "rejected-actions": 3 } })
    await expect(episode.step("go")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await episode[Symbol.asyncDispose]?.()
  })

  it("fail the episode if fields are wrong, or the server has an internal error", async () => {
    const server = await serve()
    const episode = await start({ url: server.url, actionField: "nope" })
    await expect(episode.step("go")).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message:
        /ws:\/\/127.*VALIDATION_ERROR, Invalid message, command: missing; nope: extra_forbidden.*actionField or act/,
    })
    await episode[Symbol.asyncDispose]?.()
    for (const code of ["INVALID_JSON", "UNKNOWN_TYPE", "SESSION_ERROR", "NEWS"]) {
      const odd = await serve({ answer: ({ type }) => (type === "step" ? error(code, "no") : undefined) })
      const failing = await start({ url: odd.url })
      await expect(failing.step("go")).rejects.toMatchObject({ code: "ENVIRONMENT_FAILED", message: new RegExp(code) })
      await failing[Symbol.asyncDispose]?.()
      await released(odd)
    }
    const broken = await serve({ answer: () => error("FACTORY_ERROR", "no such game") })
    await expect(start({ url: broken.url })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /answered a reset with FACTORY_ERROR, no such game/,
    })
    await released(broken)
  })
})

describe("the field of actions", () => {
  const schema = (required: unknown, properties: object) => ({ action: { ...actionSchema, required, properties } })
  const text = { type: "string" }

  it("is the only required text field", async () => {
    const server = await serve({
      schema: schema(["message"], { message: text, note: text }),
      answer: ({ type }) => (type === "step" ? observation("ok", 0, false) : undefined),
    })
    const environment = openenv({ url: server.url })
    const context = { signal: new AbortController().signal, random: new Random(1) }
    for (let i = 0; i < 2; i++) {
      const episode = await environment.start({ seed: 1 }, context)
      await episode.step("[crane]")
      await episode[Symbol.asyncDispose]?.()
      await released(server)
    }
    expect(server.received).toContainEqual({ type: "step", data: { message: "[crane]" } })
  })

  it.each([
    [schema(["action_id"], { action_id: { type: "integer" } }), "(action_id). Set actionField or act"],
    [schema(["a", "b"], { a: text, b: text }), "(a, b)"],
    [schema([], { a: text }), "(a)"],
    [schema(undefined, {}), "()"],
    ["nonsense", "()"],
  ])("must be named where the schema leaves it open: %j", async (given, message) => {
    const server = await serve({ schema: given })
    await expect(start({ url: server.url })).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: expect.stringContaining(message),
    })
    expect(server.used().most).toBe(0)
  })

  it("is requested again if it was not found", async () => {
    let asked = 0
    const server = await serve({
      get schema() {
        return asked++ === 0 ? {} : undefined
      },
    })
    const environment = openenv({ url: server.url })
    const context = { signal: new AbortController().signal, random: new Random(1) }
    await expect(environment.start({ seed: 1 }, context)).rejects.toMatchObject({ code: "BAD_CONFIG" })
    for (let i = 0; i < 2; i++) {
      const episode = await environment.start({ seed: 1 }, context)
      await episode[Symbol.asyncDispose]?.()
    }
    expect(asked).toBe(2)
  })

  it("is not searched in an infinite schema", async () => {
    let sent = 0
    const url = await listen((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")
      const block = Buffer.alloc(2 ** 20, " ")
      const more = () => {
        while (!socket.destroyed && sent < 500) {
          sent++
          if (!socket.write(block)) return
        }
      }
      socket.on("drain", more)
      more()
    })
    await expect(start({ url })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: expect.stringContaining("more than 16 MiB"),
    })
    expect(sent).toBeLessThan(100)
  })

  it("cannot be determined if no server answers", async () => {
    const server = await startServer()
    await server.stop()
    await expect(start({ url: server.url })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /http:\/\/127.*\/schema.*ECONNREFUSED.*Start the OpenEnv server/,
    })
  })
})
