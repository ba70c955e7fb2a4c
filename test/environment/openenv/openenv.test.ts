import { createServer, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { afterEach, describe, expect, it } from "vitest"
import { replyFormat } from "../../../src/environment/agent.ts"
import { checkEnvironment } from "../../../src/environment/check.ts"
import type { Turn } from "../../../src/environment/environment.ts"
import { openEnv } from "../../../src/environment/openenv/openenv.ts"
import { type OpenEnvOptions, type OpenEnvTask, openEnvFields } from "../../../src/environment/openenv/options.ts"
import { serverAddress } from "../../../src/environment/openenv/server-address.ts"
import { Random } from "../../../src/random.ts"
import { rolloutDefaults } from "../../../src/training/defaults.ts"
import { actionSchema, error, observation, type ServerOptions, startServer, type TestServer } from "./server.ts"

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function serve(options: ServerOptions = {}): Promise<TestServer> {
  const server = await startServer(options)
  stops.push(server.stop)
  return server
}

/** A TCP server that is no OpenEnv server. */
async function listen(handle: (socket: Socket) => void): Promise<string> {
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on("error", () => {})
    handle(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  stops.push(async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

function start(options: OpenEnvOptions, seed = 7, signal = new AbortController().signal) {
  return openEnv(options).start({ seed }, { signal, random: new Random(1) })
}

/** Waits until the server has seen all connections end. */
async function released(server: TestServer): Promise<void> {
  while (server.used().now > 0) await sleep(5)
}

const sockets = () => process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length
const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

describe("openEnv", () => {
  it("keeps the contract of environments", async () => {
    const server = await serve()
    await checkEnvironment(openEnv({ url: server.url }))
    await checkEnvironment(openEnv({ url: server.url, actionField: "command", rules: false, thinking: "off" }))
    await released(server)
  })

  it("resets with the seed, steps, and reads observations, rewards and ends", async () => {
    const server = await serve()
    const episode = await start({ url: server.url.replace("http", "ws") })
    expect(episode.first).toEqual({ text: "start seed=7", anchor: "start seed=7", actions: ["go", "stop"] })
    expect(await episode.step("go")).toEqual({
      observation: { text: "you go", anchor: "you go", actions: ["go", "stop"] },
      reward: 0,
      terminated: false,
      truncated: false,
      metrics: { success: 0, refused: 0 },
    })
    expect(await episode.step("stop")).toMatchObject({ reward: 1, terminated: true, metrics: { success: 1 } })
    await expect(episode.step("go")).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /is over/ })
    await episode[Symbol.asyncDispose]()
    await expect(episode.step("go")).rejects.toMatchObject({ code: "DISPOSED" })
    await released(server)
    expect(server.received).toEqual([
      { type: "reset", data: { seed: 7 } },
      { type: "step", data: { command: "go" } },
      { type: "step", data: { command: "stop" } },
      { type: "close" },
    ])
  })

  it.each([undefined, null, "x", {}, { seed: "7" }, { seed: 1.5 }])("refuses the task %j", async (task) => {
    const context = { signal: new AbortController().signal, random: new Random(1) }
    await expect(openEnv().start(task as unknown as OpenEnvTask, context)).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringContaining("whole number as its seed"),
    })
  })

  it("gives up, by default, before the training loop would", () => {
    for (const limit of [openEnvFields.messageTimeout, openEnvFields.capacityTimeout])
      expect(limit.fallback).toBeLessThan(rolloutDefaults.environmentTimeout)
  })

  it("cuts off at maxSteps", async () => {
    const server = await serve()
    const episode = await start({ url: server.url, maxSteps: 2 })
    expect(await episode.step("go")).toMatchObject({ terminated: false, truncated: false })
    expect(await episode.step("go")).toMatchObject({ terminated: false, truncated: true, metrics: { success: 0 } })
    await expect(episode.step("go")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await episode[Symbol.asyncDispose]()
  })

  it("counts an end at the last step as an end", async () => {
    const server = await serve()
    const episode = await start({ url: server.url, maxSteps: 1 })
    expect(await episode.step("stop")).toMatchObject({ terminated: true, truncated: false, metrics: { success: 1 } })
    await episode[Symbol.asyncDispose]()
  })

  it.each([
    [null, 0],
    [true, 1],
    [false, 0],
    [-2.5, -2.5],
    [undefined, 0],
  ])("takes the reward %j as %d", async (reward, expected) => {
    const server = await serve({
      answer: ({ type }) => (type === "step" ? observation("x", reward, false) : undefined),
    })
    const episode = await start({ url: server.url })
    expect((await episode.step("go")).reward).toBe(expected)
    await episode[Symbol.asyncDispose]()
  })

  it("lets options say what is sent and what is read", async () => {
    const server = await serve({
      answer: ({ type }) =>
        type === "step" ? observation("moved", 0.2, true, { state: { x: 1 }, moves: ["e4"] }) : undefined,
    })
    const fields = { textField: "text", anchorField: "state", actionsField: "moves" }
    const environment = openEnv({
      url: server.url,
      reset: ({ seed }) => ({ seed: seed + 1, level: "easy" }),
      act: (action) => ({ command: action.toUpperCase() }),
      success: ({ reward, done }) => done && reward > 0.5,
      observe: (seen) => ({ text: `I see ${(seen as { text: string }).text}`, actions: ["one"] }),
    })
    const episode = await environment.start(
      { seed: 1 },
      { signal: new AbortController().signal, random: new Random(1) },
    )
    expect(episode.first).toEqual({ text: "I see start seed=2", anchor: "I see start seed=2", actions: ["one"] })
    expect((await episode.step("go")).metrics?.success).toBe(0)
    await episode[Symbol.asyncDispose]()
    await released(server)
    expect(server.received.slice(0, 2)).toEqual([
      { type: "reset", data: { seed: 2, level: "easy" } },
      { type: "step", data: { command: "GO" } },
    ])

    await expect(start({ url: server.url, ...fields })).rejects.toMatchObject({
      code: "BAD_CONFIG",
      message: /anchorField is "state", but the observation has the fields text, admissible/,
    })
    const other = await start({ url: server.url, textField: "text" })
    await other[Symbol.asyncDispose]()
    await released(server)
  })

  it("reads named fields, and writes what is no text as JSON", async () => {
    const answer: ServerOptions["answer"] = ({ type }) =>
      type === "reset" ? observation("moved", 0, false, { board: [[0, 1]], state: { x: 1 }, moves: ["e4"] }) : undefined
    const server = await serve({ answer })
    const episode = await start({ url: server.url, textField: "board", anchorField: "state", actionsField: "moves" })
    expect(episode.first).toEqual({ text: "[[0,1]]", anchor: '{"x":1}', actions: ["e4"] })
    await episode[Symbol.asyncDispose]()
  })

  it.each([
    [{ prompt: "Guess.", messages: [] }, "Guess."],
    [{ message: "hi", text: " " }, "hi"],
    [{ question: "2+2?", score: 0 }, "2+2?"],
    [{ info_state: [0, 1], legal_actions: [2] }, '{"info_state":[0,1],"legal_actions":[2]}'],
    ["plain", "plain"],
    [null, "null"],
  ])("guesses what %j shows", async (seen, text) => {
    const data = { observation: seen, reward: null, done: false }
    const server = await serve({ answer: ({ type }) => (type === "reset" ? { type: "observation", data } : undefined) })
    const episode = await start({ url: server.url })
    expect(episode.first).toEqual({ text, anchor: text })
    await episode[Symbol.asyncDispose]()
  })

  it("refuses observations that are nested too deeply", async () => {
    const deep = `{"type":"observation","data":{"observation":${"[".repeat(200_000)}${"]".repeat(200_000)},"done":false}}`
    const server = await serve({ answer: ({ type }) => (type === "reset" ? deep : undefined) })
    await expect(start({ url: server.url })).rejects.toMatchObject({ code: "ENVIRONMENT_FAILED", message: /textField/ })
    await released(server)
  })

  it.each([
    ["http://127.0.0.1:8000", "ws://127.0.0.1:8000/ws", "http://127.0.0.1:8000/schema"],
    ["ws://host:1/ws", "ws://host:1/ws", "http://host:1/schema"],
    ["https://a.hf.space/", "wss://a.hf.space/ws", "https://a.hf.space/schema"],
    ["wss://host/env/one/ws/", "wss://host/env/one/ws", "https://host/env/one/schema"],
    ["http://me:secret@host/?key=1#top", "ws://me:secret@host/ws?key=1", "http://host/schema?key=1"],
  ])("takes the address %s", (url, socket, schema) => {
    const address = serverAddress(url)
    expect([address.socket.href, address.schema.href]).toEqual([socket, schema])
    expect(address.name).toBe(socket.replace("me:secret@", "").replace("?key=1", ""))
  })

  it("lets 8 episodes wait for 2 slots", async () => {
    const server = await serve({ slots: 2 })
    const environment = openEnv({ url: server.url })
    const rewards = await Promise.all(
      Array.from({ length: 8 }, async (_, seed) => {
        const context = { signal: new AbortController().signal, random: new Random(seed) }
        const episode = await environment.start({ seed }, context)
        expect(episode.first.text).toBe(`start seed=${seed}`)
        await episode.step("go")
        await sleep(20)
        const { reward } = await episode.step("stop")
        await episode[Symbol.asyncDispose]()
        return reward
      }),
    )
    expect(rewards).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
    await released(server)
    expect(server.used().most).toBe(2)
    expect(server.used().refused).toBeGreaterThanOrEqual(6)
  })

  it("hangs up before it knocks again, also where the server does not", async () => {
    let full = 3
    const server = await serve({
      slots: 10,
      answer: ({ type }) => (type === "reset" && full-- > 0 ? error("CAPACITY_REACHED", "later") : undefined),
    })
    const episode = await start({ url: server.url })
    while (server.used().now > 1) await sleep(5)
    expect(server.received.filter((message) => (message as { type: string }).type === "reset")).toHaveLength(4)
    await episode[Symbol.asyncDispose]()
    await released(server)
  })

  it("leaves neither sockets nor timers behind", async () => {
    const server = await serve()
    const before = [sockets(), timers()] as const
    const episode = await start({ url: server.url })
    await episode.step("go")
    expect(sockets()).toBeGreaterThan(before[0])
    await episode[Symbol.asyncDispose]()
    await episode[Symbol.asyncDispose]()
    await released(server)
    while (sockets() > before[0]) await sleep(5)
    expect(timers()).toBeLessThanOrEqual(before[1])
  })

  it.each([
    [{ url: "127.0.0.1:8000" }, "url must be an address"],
    [{ url: "ftp://host" }, "url must be an address"],
    [{ url: "" }, "url must be a text"],
    [{ maxSteps: 0 }, "maxSteps must be a whole number from 1 to 10000, not 0"],
    [{ messageTimeout: 0 }, "messageTimeout"],
    [{ capacityTimeout: -1 }, "capacityTimeout"],
    [{ maxFrameBytes: 1.5 }, "maxFrameBytes"],
    [{ textField: 3 }, "textField must be a text"],
    [{ act: "command" }, "act must be a function"],
    [{ action_field: "x" }, "action_field is not an option; known: "],
  ])("refuses the options %j", (options, message) => {
    expect(() => openEnv(options as OpenEnvOptions)).toThrow(
      expect.objectContaining({ code: "BAD_CONFIG", message: expect.stringContaining(`openenv: ${message}`) }),
    )
  })
})

describe("actions that the server refuses", () => {
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
        text: `start seed=7\n\nThe action was refused: ${shown}`,
        anchor: "start seed=7",
        actions: ["go", "stop"],
      },
      reward: 0,
      terminated: false,
      truncated: false,
    }
    expect(await episode.step("fly")).toEqual({ ...refused, metrics: { success: 0, refused: 1 } })
    expect(await episode.step("fly")).toEqual({ ...refused, metrics: { success: 0, refused: 2 } })
    expect(await episode.step("go")).toMatchObject({ observation: { text: "you go" }, metrics: { refused: 2 } })
    expect(await episode.step("fly")).toMatchObject({ truncated: true, metrics: { refused: 3 } })
    await expect(episode.step("go")).rejects.toMatchObject({ code: "BAD_ARGUMENT" })
    await episode[Symbol.asyncDispose]()
  })

  it("fail the episode where the fields are wrong, or the server's own affairs", async () => {
    const server = await serve()
    const episode = await start({ url: server.url, actionField: "nope" })
    await expect(episode.step("go")).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message:
        /ws:\/\/127.*VALIDATION_ERROR, Invalid message, command: missing; nope: extra_forbidden.*actionField or act/,
    })
    await episode[Symbol.asyncDispose]()
    for (const code of ["INVALID_JSON", "UNKNOWN_TYPE", "SESSION_ERROR", "NEWS"]) {
      const odd = await serve({ answer: ({ type }) => (type === "step" ? error(code, "no") : undefined) })
      const failing = await start({ url: odd.url })
      await expect(failing.step("go")).rejects.toMatchObject({ code: "ENVIRONMENT_FAILED", message: new RegExp(code) })
      await failing[Symbol.asyncDispose]()
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

  it("is the one required text", async () => {
    const server = await serve({
      schema: schema(["message"], { message: text, note: text }),
      answer: ({ type }) => (type === "step" ? observation("ok", 0, false) : undefined),
    })
    const environment = openEnv({ url: server.url })
    const context = { signal: new AbortController().signal, random: new Random(1) }
    for (let i = 0; i < 2; i++) {
      const episode = await environment.start({ seed: 1 }, context)
      await episode.step("[crane]")
      await episode[Symbol.asyncDispose]()
      await released(server)
    }
    expect(server.received).toContainEqual({ type: "step", data: { message: "[crane]" } })
  })

  it.each([
    [schema(["action_id"], { action_id: { type: "integer" } }), "(action_id). Set actionField, or give act"],
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

  it("is asked for again where it was not found", async () => {
    let asked = 0
    const server = await serve({
      get schema() {
        return asked++ === 0 ? {} : undefined
      },
    })
    const environment = openEnv({ url: server.url })
    const context = { signal: new AbortController().signal, random: new Random(1) }
    await expect(environment.start({ seed: 1 }, context)).rejects.toMatchObject({ code: "BAD_CONFIG" })
    for (let i = 0; i < 2; i++) {
      const episode = await environment.start({ seed: 1 }, context)
      await episode[Symbol.asyncDispose]()
    }
    expect(asked).toBe(2)
  })

  it("is not looked for in a schema without end", async () => {
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

  it("cannot be found where no server answers", async () => {
    const server = await startServer()
    await server.stop()
    await expect(start({ url: server.url })).rejects.toMatchObject({
      code: "ENVIRONMENT_FAILED",
      message: /http:\/\/127.*\/schema.*ECONNREFUSED.*Start the OpenEnv server/,
    })
  })
})

describe("a server at fault", () => {
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
    await episode[Symbol.asyncDispose]()
    await released(server)
  }

  it("dies in the middle", () =>
    failsAtStep((_, socket) => {
      socket.terminate()
      return null
    }, /closed the connection \(1006\)/))

  it("closes in the middle", () =>
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
    ['{"type":"observation","data":{"observation":{},"reward":1}}', /done is neither/],
    ['{"type":"observation","data":{"observation":{},"reward":"1","done":false}}', /reward is no number/],
    [`"${"x".repeat(5000)}"`, /^.{0,300}$/],
    ["[".repeat(1000), /it is not JSON/],
    [Buffer.from("{}"), /binary frame/],
  ])("sends nonsense: %j", (frame, message) => failsAtStep(() => frame, message))

  it("sends a frame over the limit", () =>
    failsAtStep(() => observation("x".repeat(2000), 0, false), /more than 1000 bytes; raise maxFrameBytes/, {
      maxFrameBytes: 1000,
    }))

  it("answers before it was asked, or without end", async () => {
    const twice = await serve({
      answer: ({ type }, socket) => {
        if (type === "reset") socket.send(JSON.stringify(observation("early", 0, false)))
        return undefined
      },
    })
    const episode = await start({ url: twice.url, ...options })
    await sleep(20)
    await expect(episode.step("go")).rejects.toMatchObject({ message: /before it was asked/ })
    await episode[Symbol.asyncDispose]()
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
        await flooded[Symbol.asyncDispose]()
      }
    })().then(
      () => expect.unreachable(),
      (reason) => expect(reason).toMatchObject({ code: "ENVIRONMENT_FAILED", message: /nobody asked for/ }),
    )
  })

  it("tells of an end between two steps", async () => {
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
    await episode[Symbol.asyncDispose]()
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
      message: /ws:\/\/127.*did not answer within 0.05 s; raise messageTimeout/,
    })
    await episode[Symbol.asyncDispose]()
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

  it("is no OpenEnv server, or none at all", async () => {
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
    await first[Symbol.asyncDispose]()
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
      await episode[Symbol.asyncDispose]()
    } else {
      const pending = start({ url: server.url, ...(what !== "the schema" && { actionField: "command" }) }, 1, signal)
      if (what === "the schema") controller.abort(reason)
      else setTimeout(() => controller.abort(reason), 120)
      await expect(pending).rejects.toBe(reason)
    }
    await holder?.[Symbol.asyncDispose]()
    await released(server)
  })

  it("of the past lets nothing start", async () => {
    await expect(start({}, 1, AbortSignal.abort(reason))).rejects.toBe(reason)
  })

  it("is not needed to refuse two steps at once", async () => {
    const server = await serve()
    const episode = await start({ url: server.url })
    const both = [episode.step("go"), episode.step("go")]
    await expect(both[1]).rejects.toMatchObject({ code: "BAD_ARGUMENT", message: /one step at a time/ })
    expect((await both[0])?.observation.text).toBe("you go")
    await episode[Symbol.asyncDispose]()
  })
})

describe("what is said to and by the model", () => {
  const now = { text: "Board", anchor: "Board" }
  const chess = { ...now, actions: ["Nf3", "nf3x", "e4"] }
  const history: Turn[] = [{ observation: now, reply: "<action>e4</action>", action: "e4" }]

  it.each([
    ["<think>.</think><action>nf3</action>", chess, "Nf3", true],
    ["<think>.</think><action> Qh5 </action>", now, "Qh5", true],
    ["<action>Qh5</action>", now, "Qh5", false],
    ["Qh5", now, "Qh5", false],
    ["<think>.</think><action>nf3</action>", { ...now, actions: ["nf3", "NF3"] }, "nf3", true],
    ["<think>.</think><ACTION>İ Go</ACTION>", now, "İ Go", true],
    ["</action><action>", now, "", false],
  ])("parse reads %j", (reply, seen, action, valid) => {
    expect(openEnv().parse(reply, seen)).toEqual({ action, valid })
  })

  it("the prompt shows the past, the observation and what is possible", () => {
    const goal = "You act in an environment, one step at a time, to reach the goal that it sets."
    expect(openEnv().prompt({ seed: 1 }, history, chess)[0]!.content.split("\n\n")).toEqual([
      goal,
      "[Observation 1: 'Board', Action 1: 'e4']",
      "Step 2, now:\nBoard",
      "Possible actions:\nNf3\nnf3x\ne4",
      replyFormat("required", "one of the possible actions"),
    ])
    expect(openEnv({ thinking: "off" }).prompt({ seed: 1 }, [], now)[0]!.content.split("\n\n")).toEqual([
      goal,
      "Step 1, now:\nBoard",
      replyFormat("off", "the text of your next action"),
    ])
    expect(openEnv({ rules: false }).prompt({ seed: 1 }, [], now)[0]!.content).toBe("Board")
    expect(openEnv({ rules: false, history: 0 }).prompt({ seed: 1 }, history, chess)[0]!.content).toBe(
      "Board\n\nPossible actions:\nNf3\nnf3x\ne4",
    )
  })

  it("tasks are seeds", () => {
    const [test] = openEnv().tasks("test", new Random(1))
    expect(test).toEqual({ seed: 65536 })
    const [train] = openEnv().tasks("train", new Random(1))
    expect(train!.seed).toBeLessThan(65536)
  })
})
