import { request } from "node:http"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type TinkerServer, tinkerServer } from "../../src/engine-server/tinker-server.ts"
import type { Environment } from "../../src/environment/environment.ts"
import { doorsEnvironment } from "../rollout/doors.ts"
import { TinyModel } from "../training/tiny.ts"
import { key, Servings } from "./serving.ts"

// Paths, names and ids that no client of `gigpo engine` has been given: the fault is the client's, so the answer is a 4xx.

const doors = new TinyModel(doorsEnvironment() as Environment)
const faults: unknown[] = []
let server: TinkerServer
beforeAll(() => {
  server = tinkerServer({
    ...{ model: "tiny", maxPositions: 64, stopTokens: [], key, checkpoints: "nowhere/at/all" },
    open: () => Promise.reject(new Error("nothing is opened here")),
    openFrozen: () => Promise.reject(new Error("nothing is opened here")),
    onError: (error) => faults.push(error),
  })
})
afterAll(() => server[Symbol.asyncDispose]())

const long = "n".repeat(300)
const names: Readonly<Record<string, string>> = {
  "half a surrogate pair": "\ud800",
  "300 characters": long,
  "a path up": "..",
  "an empty text": "",
  "a control character": "a\u0000b",
  "a member of every object": "__proto__",
  constructor: "constructor",
  "colons alone": ":".repeat(80),
  "letters that grow": "é".repeat(90),
  "30,000 characters": "x/".repeat(15_000),
}
const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  "/session_heartbeat": ["session_id"],
  "/create_model": ["session_id", "base_model"],
  "/load_weights": ["path", "model_id", "session_id"],
  "/get_info": ["model_id"],
  "/unload_model": ["model_id"],
  "/optim_step": ["model_id"],
  "/save_weights": ["model_id", "path"],
  "/save_weights_for_sampler": ["model_id", "path"],
  "/forward_backward": ["model_id"],
  "/forward": ["model_id"],
  "/gigpo/clear_gradients": ["model_id"],
  "/weights_info": ["tinker_path"],
  "/create_sampling_session": ["session_id", "model_path"],
  "/asample": ["sampling_session_id"],
  "/retrieve_future": ["request_id"],
}

async function ask(method: string, path: string, body?: string) {
  const headers = { "x-api-key": key, "content-type": "application/json" }
  const url = `http://engine/api/v1${path}`
  const response = await server.answer(new Request(url, { method, headers, body: body ?? null }))
  return { status: response.status, text: await response.text() }
}

it.each(Object.keys(names))("of %s are rejected in every field of every request", async (title) => {
  const name = names[title]!
  for (const [path, fields] of Object.entries(fieldsOf)) {
    const values = [
      name,
      `tinker://${name}/weights/${name}`,
      `tinker://a/weights/${name}`,
      `tinker://${name}/weights/a`,
    ]
    for (const value of values) {
      // JSON.stringify escapes half a pair, as a client may.
      const { status, text } = await ask(
        "POST",
        path,
        JSON.stringify(Object.fromEntries(fields.map((f) => [f, value]))),
      )
      expect([path, value.slice(0, 40), status >= 400 && status < 500]).toEqual([path, value.slice(0, 40), true])
      expect(text.length).toBeLessThan(2000)
    }
  }
  expect(faults).toEqual([])
})

const encoded = [
  ...["%E0%A4%A", "%", "%ff", "%00", "%2e%2e", "%2E%2E%2F%2E%2E", "..%2f..", "%ED%A0%80", "a%2Fb", long],
  ...["%3A".repeat(80), "%C3%A9".repeat(90), "__proto__", "constructor", "s:train:0"],
]
const templates = [
  ...["GET /training_runs/X", "GET /training_runs/X/checkpoints", "GET /samplers/X", "GET /downloads/X"],
  ...["GET /training_runs/X/checkpoints/weights/X/archive", "GET /training_runs/a/checkpoints/weights/X/archive"],
  ...["GET /training_runs/X/checkpoints/sampler_weights/a/archive", "GET /training_runs/a/checkpoints/X/a/archive"],
  ...["DELETE /training_runs/X/checkpoints/weights/X", "DELETE /training_runs/X/checkpoints/weights/a"],
  ...["DELETE /training_runs/a/checkpoints/X/a", "POST /sessions/X/finish", "GET /X", "PUT /X", "POST /X"],
]
it.each(templates)("in the path are rejected: %s", async (template) => {
  for (const place of encoded) {
    const [method = "", path = ""] = template.replaceAll("X", place).split(" ")
    const { status, text } = await ask(method, path, method === "POST" ? "{}" : undefined)
    // A list of the weights of a model that has none is empty.
    const isEmptyList = status === 200 && text === '{"checkpoints":[]}'
    expect([method, path, isEmptyList || (status >= 400 && status < 500)]).toEqual([method, path, true])
    expect(text.length).toBeLessThan(2000)
  }
  expect(faults).toEqual([])
})

const servings = new Servings()
it("a request line that names another host does not decide where an archive is", async () => {
  const serving = await servings.serve(doors.directory, { models: 1 })
  const engine = await serving.connect({ rank: 2 })
  const post = async (path: string, body: object) => {
    const headers = { "x-api-key": key, "content-type": "application/json" }
    const response = await fetch(`${serving.url}/api/v1${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    })
    return (await response.json()) as Record<string, string>
  }
  const { session_id } = await post("/create_session", {})
  const made = await post("/create_model", { session_id, base_model: "tiny", lora_config: { rank: 2 } })
  await post("/retrieve_future", { request_id: made.request_id })
  const saved = await post("/save_weights", { model_id: made.model_id, seq_id: 1, path: "w" })
  await post("/retrieve_future", { request_id: saved.request_id })
  const { port, host } = new URL(serving.url)
  const path = `/api/v1/training_runs/${encodeURIComponent(made.model_id!)}/checkpoints/weights/w/archive`
  const ask = async (target: string) =>
    await new Promise<{ status: number | undefined; location: string | undefined }>((resolve, reject) => {
      const asked = { host: "127.0.0.1", port, path: target, headers: { host, "x-api-key": key } }
      request(asked, (response) => {
        response.resume()
        resolve({ status: response.statusCode, location: response.headers.location })
      })
        .on("error", reject)
        .end()
    })
  expect(await ask(`http://evil.example${path}`)).toEqual({ status: 400, location: undefined })
  const { location } = await ask(`http://${host}${path}`)
  expect(location).toMatch(new RegExp(`^http://${host}/api/v1/downloads/[\\w-]+$`))
  expect((await fetch(location!)).status).toBe(200)
  await engine.dispose()
})
