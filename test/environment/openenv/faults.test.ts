import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import type { OpenEnvOptions } from "../../../src/environment/openenv/options.ts"
import { error, observation, type ServerOptions } from "./server.ts"
import { listen, released, serve, start, stops } from "./setup.ts"

describe("a faulty server", () => {
  const options = { actionField: "command" }
  const failsAtStep = async (answer: ServerOptions["answer"], message: RegExp, more: OpenEnvOptions = {}) => {
    const server = await serve({
      answer: (sent, ...rest) => (sent.type === "step" ? answer!(sent, ...rest) : undefined),
    })
    const episode = await start({ url: server.url, ...options, ...more })
    const name = server.url.replace("http", "ws")
    await expect(episode.step("go")).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: expect.stringMatching(message),
    })
    await expect(episode.step("go")).rejects.toMatchObject({ message: expect.stringContaining(`openenv: ${name}/ws`) })
    await episode[Symbol.asyncDispose]?.()
    await released(server)
  }

  it("crashes during an episode", () =>
    failsAtStep((_, socket) => {
      socket.terminate()
      return null
    }, /closed the connection \(1006\)/))

  it("closes the connection during an episode", () =>
    failsAtStep((_, socket) => {
      socket.close(1011, "out of memory")
      return null
    }, /closed the connection \(1011, out of memory\)/))

  it.each([
    ["hello", /sent "hello", which is not of the OpenEnv protocol: it is not JSON/],
    ["", /it is not JSON/],
    ["null", /it has no data/],
    ["[]", /it has no data/],
    ['{"type":"observation"}', /it has no data/],
    ['{"data":{}}', /its type is missing/],
    ['{"type":"state","data":{}}', /its type is "state"/],
    ['{"type":"observation","data":{}}', /no observation/],
    ['{"type":"observation","data":{"observation":{},"reward":1}}', /done is not a boolean/],
    ['{"type":"observation","data":{"observation":{},"reward":"1","done":false}}', /reward is not a number/],
    [`"${"x".repeat(5000)}"`, /^.{0,300}$/],
    ["[".repeat(1000), /it is not JSON/],
    [Buffer.from("{}"), /binary frame/],
    [
      '{"type":"error","data":{"code":{"toString":1},"message":{"toString":2},"errors":[{"type":{"toString":3},"loc":[{"toString":4}]}]}}',
      /"toString":2/,
    ],
  ])("sends nonsense: %j", (frame, message) => failsAtStep(() => frame, message))

  it("sends a frame over the limit", () =>
    failsAtStep(() => observation("x".repeat(2000), 0, false), /more than 1000 bytes; increase maxFrameBytes/, {
      maxFrameBytes: 1000,
    }))

  it("answers without a request, or endlessly", async () => {
    const twice = await serve({
      answer: ({ type }, socket) => {
        if (type === "reset") socket.send(JSON.stringify(observation("early", 0, false)))
        return undefined
      },
    })
    const episode = await start({ url: twice.url, ...options })
    await sleep(20)
    await expect(episode.step("go")).rejects.toMatchObject({ message: /before a request/ })
    await episode[Symbol.asyncDispose]?.()
    const flood = await serve({
      answer: ({ type }, socket) => {
        for (let i = 0; type === "reset" && i < 100; i++) socket.send(JSON.stringify(observation("more", 0, false)))
        return undefined
      },
    })
    await (async () => {
      const flooded = await start({ url: flood.url, ...options })
      await sleep(20)
      try {
        await flooded.step("go")
      } finally {
        await flooded[Symbol.asyncDispose]?.()
      }
    })().then(
      () => expect.unreachable(),
      (reason) => expect(reason).toMatchObject({ code: "ENVIRONMENT_FAILED", message: /without a request/ }),
    )
  })

  it("reports an end between two steps", async () => {
    const server = await serve({
      answer: ({ type }, socket) => {
        if (type !== "reset") return undefined
        setTimeout(() => {
          socket.send(JSON.stringify(error("SESSION_ERROR", "idle for too long")))
          socket.close(1000)
        }, 5)
        return undefined
      },
    })
    const episode = await start({ url: server.url, ...options })
    await released(server)
    await expect(episode.step("go")).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /SESSION_ERROR, idle for too long/,
    })
    await episode[Symbol.asyncDispose]?.()
  })

  it("is done before the first step", async () => {
    const server = await serve({ answer: ({ type }) => (type === "reset" ? observation("x", 0, true) : undefined) })
    await expect(start({ url: server.url, ...options })).rejects.toMatchObject({ message: /done right after a reset/ })
    await released(server)
  })

  it("does not answer in time", async () => {
    const server = await serve({ answer: ({ type }) => (type === "step" ? null : undefined) })
    const episode = await start({ url: server.url, ...options, messageTimeout: 0.05 })
    await expect(episode.step("go")).rejects.toMatchObject({
      code: "ENVIRONMENT_TIMEOUT",
      message: /ws:\/\/127.*did not answer within 0.05 s; increase messageTimeout/,
    })
    await episode[Symbol.asyncDispose]?.()
    await released(server)
  })

  it("never opens the connection", async () => {
    const url = await listen(() => {})
    await expect(start({ url, ...options, messageTimeout: 0.05 })).rejects.toMatchObject({
      code: "ENVIRONMENT_TIMEOUT",
      message: /did not open a connection/,
    })
    await expect(start({ url, messageTimeout: 0.05 })).rejects.toMatchObject({ code: "ENVIRONMENT_TIMEOUT" })
  })

  it("is not an OpenEnv server, or does not exist", async () => {
    const url = await listen((socket) => socket.end("SSH-2.0-OpenSSH\r\n"))
    await expect(start({ url, ...options })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /ws:\/\/127/,
    })
    for (const stop of stops.splice(0)) await stop()
    await expect(start({ url, ...options })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /cannot be reached: .*ECONNREFUSED.*Start the OpenEnv server, or correct url/,
    })
    const server = await serve()
    await expect(start({ url: `${server.url}/env`, ...options })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /\/env\/ws cannot be reached: Unexpected server response: 400/,
    })
  })

  it("has no free slot for too long", async () => {
    const server = await serve({ slots: 1 })
    const first = await start({ url: server.url, ...options })
    await expect(start({ url: server.url, ...options, capacityTimeout: 0.1 })).rejects.toMatchObject({
      code: "ENVIRONMENT_TIMEOUT",
      message: /no free slot for 0.1 s.*max_concurrent_envs/,
    })
    await first[Symbol.asyncDispose]?.()
    await released(server)
  })
})

describe("an abort", () => {
  const reason = new Error("enough")

  it.each(["a reset", "a step", "waiting for a slot", "the schema"])("ends %s at once", async (what) => {
    const busy = what === "waiting for a slot"
    const server = await serve({
      slots: 1,
      answer: ({ type }) => ((what === "a reset" && type === "reset") || type === "step" ? null : undefined),
    })
    const holder = busy ? await start({ url: server.url, actionField: "command" }) : undefined
    const controller = new AbortController()
    const { signal } = controller
    if (what === "a step") {
      const episode = await start({ url: server.url }, 1, signal)
      const pending = episode.step("go")
      setTimeout(() => controller.abort(reason), 20)
      await expect(pending).rejects.toBe(reason)
      await expect(episode.step("go")).rejects.toBe(reason)
      await episode[Symbol.asyncDispose]?.()
    } else {
      const pending = start({ url: server.url, ...(what !== "the schema" && { actionField: "command" }) }, 1, signal)
      if (what === "the schema") controller.abort(reason)
      else setTimeout(() => controller.abort(reason), 120)
      await expect(pending).rejects.toBe(reason)
    }
    await holder?.[Symbol.asyncDispose]?.()
    await released(server)
  })

  it("before the start prevents it", async () => {
    await expect(start({}, 1, AbortSignal.abort(reason))).rejects.toBe(reason)
  })

  it("is not needed to reject concurrent steps", async () => {
    const server = await serve()
    const episode = await start({ url: server.url })
    const both = [episode.step("go"), episode.step("go")]
    await expect(both[1]).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /one step at a time/ })
    expect((await both[0])?.observation.text).toBe("you go")
    await episode[Symbol.asyncDispose]?.()
  })
})
