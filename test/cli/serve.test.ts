import { once } from "node:events"
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { furtherInstalled, loadFurther } from "../clients/load.ts"
import { built, gigpo, type Outcome, tiny, untilServed } from "./gigpo.ts"

interface Served {
  readonly baseURL: string
  readonly key: string
  readonly kill: (signal: NodeJS.Signals) => void
  readonly ended: Promise<Outcome>
  /** Posts to the endpoint, with the key that was printed unless another is given. */
  ask(path: string, body: object, key?: string): Promise<Response>
}

const message = (content: string) => [{ role: "user", content }]
/** What was answered: checked by what is expected of it. */
// biome-ignore lint/suspicious/noExplicitAny: as it is said
const json = async (answer: Response | Promise<Response>): Promise<any> => await (await answer).json()
/** A random model decodes greedily in cycles: a completion that never ends. */
const endless = { model: "policy", messages: message("Hi"), temperature: 0, stream: true }

describe.skipIf(!built)("gigpo serve (needs dist: npm run build:ts)", () => {
  let folder: string
  const run = (...words: string[]) => gigpo(words, { cwd: folder })

  /** Serves until it is stopped; told once it has printed its address and key. */
  async function serve(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Served> {
    const { address: baseURL, key, kill, ended } = await untilServed(["serve", ...words], { cwd: folder, env })
    const ask: Served["ask"] = (path, body, given = key) =>
      fetch(`${baseURL}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${given}` },
        body: JSON.stringify(body),
      })
    return { baseURL, key, kill, ended, ask }
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-serve-"))
    const long = ["--set", "initialModel.maxPositions=200000"]
    expect(await run("init", "sokoban", "small", ...tiny, ...long)).toMatchObject({ code: 0 })
  })
  afterAll(async () => await rm(folder, { recursive: true }))

  it("answers clients with the key, whole and streamed, and logs neither keys nor texts", async () => {
    const { baseURL, key, kill, ended, ask } = await serve(["small/model"])
    expect(baseURL).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/)
    expect(key).toMatch(/^gigpo-[\w-]{43}$/)
    const call = { model: "policy", messages: message("xyzzy"), max_tokens: 12, temperature: 0.5, seed: 7 }
    const whole = await json(ask("/chat/completions", call))
    expect(whole.choices[0].message.role).toBe("assistant")
    expect(whole.usage.completion_tokens).toBeLessThanOrEqual(12)
    const events = await (await ask("/chat/completions?token=plugh", { ...call, stream: true })).text()
    const chunks = events.split("\n\n").filter((event) => event.startsWith("data: {"))
    const deltas = chunks.map((chunk) => JSON.parse(chunk.slice(6)).choices[0].delta.content ?? "")
    expect(deltas.join("")).toBe(whole.choices[0].message.content) // of the same seed
    expect(events.endsWith("data: [DONE]\n\n")).toBe(true)

    const models = await fetch(`${baseURL}/models`, { headers: { authorization: `Bearer ${key}` } })
    expect((await json(models)).data).toMatchObject([{ id: "policy" }])
    expect((await ask("/chat/completions", call, `${key}x`)).status).toBe(401)
    expect((await ask("/chat/completions", { ...call, model: "gpt" })).status).toBe(404)
    const refused = await ask("/chat/completions", { ...call, top_p: 0.9 })
    expect([refused.status, (await json(refused)).error.param]).toEqual([400, "top_p"])
    kill("SIGINT")
    const { code, stdout, stderr } = await ended
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${baseURL}\n${key}\n` })
    const [first, ...lines] = stderr.trimEnd().split("\n")
    expect(first).toBe("Serving small/model as policy; Ctrl-C stops the server.")
    const tokens = `${whole.usage.prompt_tokens}+${whole.usage.completion_tokens} tokens `
    expect(lines.map((line) => line.replace(/^\S+Z /, "").replace(/\d+ ms$/, "ms"))).toEqual([
      `POST /v1/chat/completions 200 ${tokens}ms`,
      `POST /v1/chat/completions 200 ${tokens}ms`,
      "GET /v1/models 200 ms",
      "POST /v1/chat/completions 404 ms",
      "POST /v1/chat/completions 400 ms",
    ])
  })

  it.skipIf(!furtherInstalled)("answers an agent on Ollama's client (npm ci --prefix test/clients)", async () => {
    const { baseURL, key, kill, ended } = await serve(["small/model"])
    const { Ollama } = await loadFurther("ollama")
    const ollama = new Ollama({ host: baseURL.replace("/v1", ""), headers: { authorization: `Bearer ${key}` } })
    const [{ name: model }] = (await ollama.list()).models
    const options = { seed: 7, temperature: 0.5, num_predict: 16 }
    const properties = { direction: { enum: ["left", "right"] } }
    const parameters = { type: "object", properties, required: ["direction"], additionalProperties: false }
    const format = { type: "object", properties: { move: parameters }, required: ["move"], additionalProperties: false }
    const messages = message("Where to?")
    const asked = { model, messages, format, options: { ...options, num_predict: 64 } }
    const { message: answer, done_reason } = await ollama.chat(asked)
    expect(done_reason).toBe("stop")
    expect(["left", "right"]).toContain(JSON.parse(answer.content).move.direction)
    let streamed = ""
    for await (const { message } of await ollama.chat({ ...asked, stream: true })) streamed += message.content
    expect(streamed).toBe(answer.content) // of the same seed
    const { response, eval_count } = await ollama.generate({ model, prompt: "Left, ", raw: true, options })
    expect([typeof response, eval_count <= 16]).toEqual(["string", true])
    await expect(ollama.chat({ model: "other", messages })).rejects.toThrow(/no model "other"/)
    kill("SIGINT")
    const { code, stderr } = await ended
    expect(code).toBe(0)
    expect(stderr.match(/POST \/api\/chat 200 \d+\+\d+ tokens/g)!.length).toBe(2)
  })

  it("serves a model without a chat template, which continues texts alone, and answers the health check without a key", async () => {
    await cp(join(folder, "small/model"), join(folder, "base"), { recursive: true })
    for (const name of ["chat_template.jinja", "gigpo.json"]) await rm(join(folder, "base", name), { force: true })
    const path = join(folder, "base/tokenizer_config.json")
    const { chat_template: _, ...config } = JSON.parse(await readFile(path, "utf8"))
    await writeFile(path, JSON.stringify(config))
    const { baseURL, kill, ended, ask } = await serve(["base"])
    const health = await fetch(new URL("/health", baseURL))
    expect([health.status, await json(health)]).toEqual([200, { status: "ok" }])
    const { choices } = await json(ask("/completions", { model: "policy", prompt: "Left, ", max_tokens: 4, seed: 1 }))
    expect(choices[0]).toMatchObject({ index: 0, finish_reason: expect.stringMatching(/^(stop|length)$/) })
    const chat = await ask("/chat/completions", { model: "policy", messages: message("Hi") })
    expect([chat.status, (await json(chat)).error.message]).toEqual([400, expect.stringContaining("/v1/completions")])
    kill("SIGINT")
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([0, expect.stringContaining("The model has no chat template")])
    expect(stderr).not.toContain("/health")
    const chatted = await gigpo(["chat", "base"], { cwd: folder, input: "Hi" })
    expect([chatted.code, chatted.stderr]).toEqual([2, expect.stringContaining("has no chat template")])
  })

  it("reads the key from the environment, and supports a model name", async () => {
    const GIGPO_API_KEY = "correct-horse-battery"
    const { key, kill, ended, ask } = await serve(["small/model", "--name", "ours", "--name", "too"], { GIGPO_API_KEY })
    expect(key).toBe(GIGPO_API_KEY)
    const names = ["ours", "too", "policy"].map(async (model) => {
      const answer = await ask("/responses", { model, input: "Hi", max_output_tokens: 2 })
      return [answer.status, (await json(answer)).model]
    })
    expect(await Promise.all(names)).toEqual([
      [200, "ours"],
      [200, "too"],
      [404, undefined],
    ])
    kill("SIGTERM")
    expect(await ended).toMatchObject({ code: 0 })
  })

  it("completes the current request when stopped, accepts no others, and logs this", async () => {
    const { baseURL, kill, ended, ask } = await serve(["small/model", "--grace", "600"])
    const reader = (await ask("/chat/completions", { ...endless, max_tokens: 4000 })).body!.getReader()
    const first = await reader.read()
    kill("SIGINT")
    let text = Buffer.from(first.value!).toString()
    await expect.poll(() => fetch(baseURL).catch(() => "refused")).toBe("refused")
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += Buffer.from(next.value)
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true)
    const { code, stderr } = await ended
    expect(code).toBe(0)
    expect(stderr).toMatch(/ POST \/v1\/chat\/completions 200 \d+\+4000 tokens /)
  })

  it.each([
    [["--grace", "0"], ["SIGTERM"], [0]],
    // The second one does not wait; of two that are pending together the system may deliver either first.
    [
      ["--grace", "600"],
      ["SIGINT", "SIGTERM"],
      [130, 143],
    ],
  ] as const)("breaks replies off at the end: %j, %j", async (words, signals, codes) => {
    const { kill, ended, ask } = await serve(["small/model", ...words])
    const completion = ask("/chat/completions", { ...endless, max_tokens: 150_000 })
    const reader = (await Promise.race([completion, ended.then(() => undefined)]))?.body?.getReader()
    await reader?.read()
    for (const signal of signals) kill(signal)
    expect(codes).toContain((await ended).code)
    const rest = async () => {
      for (;;) if ((await reader!.read()).done) return
    }
    await expect(rest()).rejects.toThrow()
  })

  it("rejects an occupied port and a weak key before it reads a model", async () => {
    const other = createServer().listen(0, "127.0.0.1")
    await once(other, "listening")
    const { port } = other.address() as AddressInfo
    expect(await run("serve", "nowhere", "--port", String(port))).toEqual({
      code: 4,
      stdout: "",
      stderr: expect.stringMatching(/^gigpo: Cannot listen on 127\.0\.0\.1:\d+ \(.*EADDRINUSE.*\); try another port/),
    })
    other.close()
    for (const GIGPO_API_KEY of ["", "short", "with blanks in the middle"]) {
      const { code, stderr } = await gigpo(["serve", "nowhere"], { cwd: folder, env: { GIGPO_API_KEY } })
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/GIGPO_API_KEY must be a key of/) })
      expect(stderr).not.toContain("blanks in")
    }
  })

  it("names the error of a folder or a setting", async () => {
    for (const [words, said] of [
      [["nowhere"], /There is no folder .*nowhere.*\[BAD_MODEL\]/],
      [["small/model", "--adapter", "small/model"], /adapter_config\.json is missing.*\[BAD_MODEL\]/],
      [["small/model", "--set", "device=tpu"], /--set: device must be "auto", "cpu", "cuda".*\[BAD_CONFIG\]/],
      [["small/model", "--set", "recompute=none"], /--set: recompute is not an option.*\[BAD_CONFIG\]/],
      [["small/model", "--temperature", "3"], /It must be a number from 0 to 2/],
    ] as const)
      expect(await run("serve", ...words, "--port", "0")).toEqual({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(said),
      })
  })

  it("serves the state of a run: an adapter of a checkpoint, with or without its model, and the run's model", async () => {
    const sets = ["lora.rank=2", "training.iterations=2", "training.optimizer.learningRate=1e-4"]
    const trained = await run("train", "small/config.yaml", ...sets.flatMap((one) => ["-s", one]))
    expect(trained).toMatchObject({ code: 0 })
    const checkpoint = "small/run/checkpoints/iteration-2"
    const texts = []
    for (const words of [["small/run"], [checkpoint], ["small/model", "--adapter", checkpoint], ["small/model"]]) {
      const { kill, ended, ask } = await serve(words)
      const call = { model: "policy", messages: message("Hi"), max_tokens: 40, logprobs: true, temperature: 0 }
      const { choices } = await json(ask("/chat/completions", call))
      texts.push(choices[0].logprobs.content.map(({ logprob }: { logprob: number }) => logprob.toFixed(4)).join())
      kill("SIGTERM")
      expect(await ended).toMatchObject({ code: 0 })
    }
    const [merged, alone, beside, untrained] = texts
    expect([alone, beside]).toEqual([merged, merged])
    expect(untrained).not.toBe(merged)
  })
})
