import { once } from "node:events"
import { readdirSync, readFileSync } from "node:fs"
import { appendFile, cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { escaped } from "../../src/cli/terminal/print-json.ts"
import { Connection } from "../../src/engine/remote/connection.ts"
import { RemoteEngine } from "../../src/engine/remote/remote-engine.ts"
import { formatRunConfig } from "../../src/runs/config.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { warn, warner } from "../../src/util/warn.ts"
import { built, gigpo, tiny } from "./gigpo.ts"

// What another party says (a model's files, data, a server) reaches a terminal as text only.

/** What terminals obey, and what hides or turns text. */
const hostile = {
  "a colour": "\x1b[31m",
  "a window title": "\x1b]0;owned\x07",
  "a link": "\x1b]8;;http://evil.test\x1b\\",
  "a clipboard": "\x1b]52;c;ZXZpbA==\x07",
  "a C1 sequence": "\u009b2J",
  "a C1 string": "\u009d0;owned\u009c",
  "a line that is written over": "real\rfake",
  "a backspace": "a\b\b\x7f",
  "a bidi override": "\u202egnp.exe",
  "a bidi isolate": "\u2066a\u2069\u200f",
  "a line separator": "a\u2028b\u2029",
  "tag characters": "\u{e0001}\u{e0041}",
  "half a character": "\ud800",
  "a tab and a bell": "\t\x07",
}
const all = Object.values(hostile).join(" ")
const obeyed = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u

describe.each(Object.entries(hostile))("%s", (_, text) => {
  afterEach(() => vi.restoreAllMocks())

  it("is shown as an escape in errors and warnings", () => {
    const warnings: string[] = []
    vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(String(warning)))
    warn(text)
    warner()(text)
    warner((message) => warnings.push(message))(text)
    const { message, stack } = new GigpoError("BAD_DATA", text)
    expect(warnings).toHaveLength(3)
    for (const one of [...warnings, message, stack!]) expect(one).not.toMatch(obeyed)
    expect(new GigpoError("BAD_DATA", message).message).toBe(message)
  })

  it("is shown as an escape in causes, as printed by Node.js", () => {
    const cause = Object.assign(new TypeError(text, { cause: new Error(text) }), { code: "X" })
    const error = new GigpoError("BAD_DATA", "It failed.", { cause })
    expect(inspect(error)).not.toMatch(obeyed)
    expect(error.cause).toBeInstanceOf(TypeError)
    expect(error.cause).toMatchObject({ code: "X" })
  })

  it("is unchanged in printed JSON, as visible characters", () => {
    const json = JSON.stringify({ [text]: [text] })
    expect(escaped(json)).not.toMatch(obeyed)
    expect(JSON.parse(escaped(json))).toEqual(JSON.parse(json))
  })
})

it("only one module of the sources emits warnings, and none uses the console", () => {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => /\.ts$/.test(name))
  const emitting = files.filter((name) =>
    /\bemitWarning\(|\bconsole\.\w+\(/.test(readFileSync(join("src", name), "utf8")),
  )
  expect(emitting).toEqual(["util/warn.ts"])
})

describe("a server of the Tinker API", () => {
  let server: Server
  let url: string
  let answers: Readonly<
    Record<string, { readonly status?: number; readonly body: unknown; readonly location?: string }>
  > = {}
  beforeAll(async () => {
    server = createServer((request, response) => {
      const {
        status = 200,
        body,
        location,
      } = answers[request.url!.replace("/api/v1", "")] ?? { status: 404, body: { detail: all } }
      response.writeHead(status, { "content-type": "application/json", ...(location && { location }) })
      response.end(typeof body === "string" ? body : JSON.stringify(body))
    }).listen(0, "127.0.0.1")
    await once(server, "listening")
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => void server.close())
  afterEach(() => vi.restoreAllMocks())

  const shape = { vocabularySize: 8, maxPositions: 8, parameters: 1 }
  const config = { "/client/config": { body: {} } }
  const session = {
    ...config,
    "/create_session": { body: { session_id: "s", info_message: all, warning_message: all, error_message: all } },
  }

  it.each<[string, typeof answers]>([
    [
      "its messages",
      {
        ...session,
        "/get_server_capabilities": { body: { supported_models: [{ model_name: all }, { model_name: "b" }] } },
      },
    ],
    ["its rejection", { "/client/config": { status: 401, body: { detail: all } } }],
    ["its error", { "/client/config": { status: 400, body: { error: { message: all } } } }],
    ["text in place of JSON", { "/client/config": { status: 422, body: all } }],
    ["a page", { "/client/config": { body: `<html>${all}` } }],
    [
      "a redirect",
      { "/client/config": { status: 302, body: {}, location: `/${encodeURIComponent(all.replace("\ud800", ""))}` } },
    ],
    ["no session", { ...config, "/create_session": { status: 409, body: { message: { deep: all } } } }],
  ])("says nothing to the terminal by %s", async (_, given) => {
    answers = given
    const told: string[] = []
    vi.spyOn(process, "emitWarning").mockImplementation((warning) => void told.push(String(warning)))
    for (const onWarning of [undefined, (message: string) => void told.push(message)])
      await RemoteEngine.connect(shape, { url, connectTimeout: 1, onWarning }).catch((error: Error) =>
        told.push(error.message, error.stack!),
      )
    expect(told.length).toBeGreaterThan(0)
    for (const text of told) expect(text).not.toMatch(obeyed)
    if (given === answers && "/create_session" in given && !("status" in given["/create_session"]!))
      expect(told.filter((text) => text.startsWith("Message of the engine: "))).toHaveLength(6)
  })

  it("does not reach the terminal through messages about an outage", async () => {
    answers = { "/x": { status: 503, body: all } }
    const told: string[] = []
    const connection = new Connection({ url, onWarning: (message) => void told.push(message) })
    await connection.attempt({ path: "/x" })
    connection.warnOfOutage()
    expect(told).toHaveLength(1)
    expect(told[0]).not.toMatch(obeyed)
  })
})

describe.skipIf(!built)("a command with hostile texts (needs dist: npm run build:ts)", () => {
  let folder: string
  const path = (...names: string[]) => join(folder, ...names)
  const run = async (...words: string[]) => {
    const env = { TINKER_API_KEY: "tml-secret" }
    const outcome = await gigpo(words, { cwd: folder, env, input: `${all}\n` })
    for (const text of [outcome.stdout, outcome.stderr]) expect(text).not.toMatch(obeyed)
    return outcome
  }
  const change = async (file: string, edit: (json: Record<string, unknown>) => void) => {
    const json = JSON.parse(await readFile(path(file), "utf8"))
    edit(json)
    await writeFile(path(file), JSON.stringify(json))
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-escapes-"))
    expect(await run("init", "number-line", "own", ...tiny)).toMatchObject({ code: 0 })
    expect(await run("train", "own/config.yaml")).toMatchObject({ code: 0 })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const model = async (name: string, edit: () => Promise<void>) => {
    await cp(path("own/model"), path(name), { recursive: true })
    await rm(path(name, "gigpo.json"))
    await edit()
  }

  it("shows keys and values of a model's files as text", async () => {
    await model("keys", () => change("keys/config.json", (json) => Object.assign(json, { [all]: all })))
    expect((await run("chat", "keys")).stderr).toMatch(/\\x1b|\\u001b/)
    await model("kind", () =>
      change("kind/config.json", (json) => Object.assign(json, { model_type: all, architectures: [all] })),
    )
    expect((await run("chat", "kind")).stderr).toMatch(/\\x1b|\\u001b/)
    const template = `{{ raise_exception(${JSON.stringify(all.replace("\ud800", ""))}) }}`
    await model("template", () =>
      change("template/tokenizer_config.json", (json) => Object.assign(json, { chat_template: template })),
    )
    expect((await run("chat", "template")).stderr).toMatch(/\\x1b|\\u001b/)
    await model("tokenizer", () =>
      change("tokenizer/tokenizer.json", (json) => Object.assign(json, { model: { type: all } })),
    )
    expect((await run("chat", "tokenizer")).stderr).toMatch(/\\x1b|\\u001b/)
  })

  it("shows lines of data as text", async () => {
    for (const line of [
      `{"messages": ${JSON.stringify(all)}}`,
      `{"${"x"}": "${all.replaceAll("\\", "")}"`,
      JSON.stringify({ [all]: 1 }),
    ]) {
      await writeFile(path("data.jsonl"), `${line}\n`)
      expect(await run("sft", "own/config.yaml", "--data", "data.jsonl", "--out", "taught")).toMatchObject({
        code: 2,
      })
    }
    await writeFile(path("benchmark.json"), JSON.stringify({ benchmark: 1, name: all }))
    expect(await run("benchmark", "show", "benchmark.json")).toMatchObject({ code: 2 })
  })

  it("shows texts of a run as text, and prints them unchanged as JSON", async () => {
    await cp(path("own/run"), path("theirs"), { recursive: true })
    const config = JSON.parse(await readFile(path("theirs/config.json"), "utf8"))
    await writeFile(
      path("theirs/config.json"),
      formatRunConfig({ ...config, run: "theirs", model: all, chat: { variables: { a: all } } }),
    )
    const shown = await run("config", "theirs/config.json")
    expect(shown).toMatchObject({ code: 0, stderr: "" })
    await writeFile(path("again.yaml"), shown.stdout)
    expect(await run("config", "again.yaml")).toMatchObject({
      code: 0,
      stdout: shown.stdout.replaceAll("\n# ", "\n# "),
    })
    await appendFile(
      path("theirs/metrics.jsonl"),
      `${JSON.stringify({ iteration: 7, metrics: { [all]: 1 }, stopped: all })}\n`,
    )
    for (const words of [
      ["runs", "."],
      ["runs", ".", "--json"],
      ["episodes", "theirs"],
      ["episodes", "theirs", "--json"],
      ["report", "theirs", "--out", "report.html"],
      ["export", "theirs", "--as", "csv", "--out", "out.csv"],
      ["evaluate", "theirs/config.json"],
      ["train", "theirs/config.json", "--resume"],
    ]) {
      const { stderr } = await run(...words)
      expect(stderr).not.toContain("[INTERNAL]")
    }
    const { stdout } = await run("runs", ".", "--json")
    expect(JSON.stringify(JSON.parse(stdout))).toContain(JSON.stringify(all).slice(1, 40))
  })

  it("shows texts of an environment as text", async () => {
    await mkdir(path("env"))
    const said = JSON.stringify(all)
    await writeFile(
      path("env/mine.mjs"),
      `export default {
        name: ${said}, tasks: () => [{}], prompt: () => [{ role: "user", content: ${said} }], parse: (action) => ({ action, valid: true }),
        start: () => ({ first: { text: ${said}, anchor: "a" }, step() { throw new Error(${said}) } }),
        expert: () => ({ complete: () => ${said} }),
      }`,
    )
    expect((await run("play", "./env/mine.mjs", "--expert")).stdout).toMatch(/\\x1b|\\u001b/)
    const sets = ["--set", "environment=./env/mine.mjs", "--set", "model=own/model", "--set", "run=mine"]
    await writeFile(path("mine.yaml"), "environment: { name: number-line }\nmodel: none\n")
    for (const words of [
      ["evaluate", "mine.yaml", "--json"],
      ["evaluate", "mine.yaml"],
      ["anchors", "mine.yaml", "--json"],
      ["estimate", "mine.yaml"],
    ])
      await run(...words, ...sets, ...tiny)
  })
})
