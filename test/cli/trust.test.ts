import { existsSync } from "node:fs"
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { formatRunConfig } from "../../src/runs/config.ts"
import { built, gigpo, type Outcome, tiny } from "./gigpo.ts"

// A run that another person made: its configuration names code, programs and servers. Whatever command it is given to, nothing of
// that is run, contacted or sent a key before the user has agreed.

const secrets = {
  TINKER_API_KEY: "tml-secret-of-the-user",
  MLFLOW_TRACKING_TOKEN: "mlflow-secret-of-the-user",
  TRACKIO_WRITE_TOKEN: "trackio-secret-of-the-user",
}

type Words = readonly string[]

/** Commands that only print or convert: they need no consent, and do none of it. */
const readers: Readonly<Record<string, Words>> = {
  config: ["config", "theirs/config.json"],
  "config with a key": ["config", "theirs/config.json", "training"],
  runs: ["runs", "theirs"],
  episodes: ["episodes", "theirs"],
  report: ["report", "theirs", "--out", "report.html", "--overwrite"],
  view: ["view", "theirs", "--port", "0"],
  "export as csv": ["export", "theirs", "--as", "csv", "--out", "out.csv", "--overwrite"],
  "export as jsonl": ["export", "theirs", "--as", "jsonl", "--out", "out.jsonl", "--overwrite"],
  "export as parquet": ["export", "theirs", "--as", "parquet", "--out", "out.parquet", "--overwrite"],
  "export as tensorboard": ["export", "theirs", "--as", "tensorboard", "--out", "events"],
  chat: ["chat", "theirs", "--max-tokens", "2"],
  serve: ["serve", "theirs", "--port", "0"],
  "clone --data": ["sft", "own/config.yaml", "--data", "theirs/episodes", "--out", "taught", "--overwrite"],
  "evaluate --model": ["evaluate", "own/config.yaml", "--model", "theirs/model", ...tiny],
  "train --fork": ["train", "own/config.yaml", "--fork", "theirs", "--set", "run=forked", "--overwrite", ...tiny],
}

/** Commands that open what a configuration names. */
const openers: Readonly<Record<string, Words>> = {
  "train --resume": ["train", "theirs/config.json", "--resume"],
  "train --overwrite": ["train", "theirs/config.json", "--overwrite"],
  train: ["train", "theirs/config.json", "--set", "run=new"],
  gateway: ["gateway", "theirs/config.json", "--resume"],
  clone: ["sft", "theirs/config.json", "--out", "cloned"],
  evaluate: ["evaluate", "theirs/config.json"],
  "evaluate --model": ["evaluate", "theirs/config.json", "--model", "theirs/model"],
  play: ["play", "theirs/config.json", "--expert"],
  anchors: ["anchors", "theirs/config.json"],
  estimate: ["estimate", "theirs/config.json"],
  "benchmark create": ["benchmark", "create", "theirs/config.json", "--out", "mine.json"],
  "benchmark show": ["benchmark", "show", "sokoban/6x6@1", "--config", "theirs/config.json"],
}

const lure = `import { appendFileSync } from "node:fs"
appendFileSync(process.env.LURED, "loaded\\n")
export default { name: "lure", tasks: () => [], start() {}, prompt: () => [], parse: () => ({}) }
`

describe.skipIf(!built)("a run of another origin (needs dist: npm run build:ts)", () => {
  let folder: string
  let server: Server
  let address: string
  /** Requests that came, with their headers and bodies. */
  let received: string[] = []

  const path = (...names: string[]) => join(folder, ...names)
  const run = (words: Words, more: { readonly trusted?: boolean } = {}): Promise<Outcome> =>
    gigpo([...words, ...(more.trusted ? ["--trust"] : [])], {
      cwd: folder,
      env: { ...secrets, LURED: path("lured"), GIGPO_API_KEY: "key-of-this-server-0123" },
      input: "Hello\n",
      // What serves has opened all that it will.
      onOutput: (_, kill) => ["view", "serve"].includes(words[0]!) && kill("SIGTERM"),
    })
  const read = async (name: string) => JSON.parse(await readFile(path(name), "utf8"))
  const bait = async (changes: object, name = "theirs") =>
    await writeFile(path(name, "config.json"), formatRunConfig({ ...(await read(`${name}/config.json`)), ...changes }))

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-trust-"))
    server = createServer((request, response) => {
      received.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`)
      response.writeHead(404).end("{}")
    }).listen(0, "127.0.0.1")
    server.on("upgrade", (request, socket) => {
      received.push(`upgrade ${request.url}`)
      socket.destroy()
    })
    await new Promise((resolve) => server.once("listening", resolve))
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    expect(await run(["init", "number-line", "own", ...tiny])).toMatchObject({ code: 0 })
    expect(await run(["train", "own/config.yaml"])).toMatchObject({ code: 0, stderr: "" })
  })
  beforeEach(async () => {
    received = []
    await cp(path("own/run"), path("theirs"), { recursive: true })
    await writeFile(path("theirs/lure.mjs"), lure)
    await rm(path("theirs/model/gigpo.json")) // it would tell of the file that is added
    await writeFile(
      path("theirs/model/remote.json"),
      JSON.stringify({ url: address, path: "tinker://theirs", baseModel: "m" }),
    )
    await bait({ run: "theirs", model: "own/model" })
  })
  afterEach(async () => {
    for (const name of ["theirs", "lured", "events"]) await rm(path(name), { recursive: true, force: true })
  })
  afterAll(async () => {
    server.close()
    await rm(folder, { recursive: true, force: true })
  })

  const untouched = () => {
    expect(existsSync(path("lured"))).toBe(false)
    expect(received).toEqual([])
  }

  const used = { use: "./lure.mjs" }
  /** Modules at every place that takes one, and two servers that have keys. */
  const everywhere = async () => {
    const { training, sft } = await read("theirs/config.json")
    const { estimator: _, loss: __, ...rest } = training
    await bait({
      environment: { ...used, wrapper: used, memory: used },
      training: { ...rest, estimator: used, loss: used, curriculum: used, rolloutHooks: used },
      sft: { ...sft, loss: used },
      engine: { url: address },
      mlflow: { url: `${address}/mlflow` },
      trackio: { url: `${address}/trackio` },
    })
  }

  for (const [name, words] of Object.entries(readers))
    it(`is read by ${name}, which runs nothing of it and contacts no server`, async () => {
      await everywhere()
      const { code, stdout, stderr } = await run(words)
      expect(stderr).not.toMatch(/UNTRUSTED|INTERNAL/)
      // The signal that ends a server may come before it listens for one, and these episodes hold no success to learn from.
      if (!["serve", "view", "clone --data"].includes(name)) expect({ code, stderr, stdout }).toMatchObject({ code: 0 })
      untouched()
    })

  for (const [name, words] of Object.entries(openers))
    it(`is not opened by ${name} before the user agrees`, async () => {
      const check = async (...told: readonly string[]) => {
        const { code, stderr } = await run(words)
        expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/\[UNTRUSTED\]/) })
        for (const text of [...told, "--trust"]) expect(stderr).toContain(text)
        for (const secret of Object.values(secrets)) expect(stderr).not.toContain(secret)
        untouched()
      }
      await everywhere()
      const places = [
        "environment",
        "environment.wrapper",
        "training.estimator",
        "training.loss",
        "training.curriculum",
      ]
      await check(
        ...[...places, "training.rolloutHooks", "sft.loss"].map((place) => `${path("theirs/lure.mjs")} (${place})`),
        `contact ${address}/ (engine.url), with the key in TINKER_API_KEY`,
        `contact ${address}/mlflow (mlflow.url), with the key in MLFLOW_TRACKING_TOKEN`,
        `contact ${address}/trackio (trackio.url), with the key in TRACKIO_WRITE_TOKEN`,
      )
      await cp(path("own/run/config.json"), path("theirs/config.json"))
      const script = `require("fs").appendFileSync(process.env.LURED, "started")`
      const agent = { name: "process", command: ["node", "-e", script], directory: "theirs" }
      const environment = { name: "openenv", url: `${address}/openenv` }
      await bait({ run: "theirs", agent, environment })
      await check(
        'start the program "node -e',
        "in theirs (agent.command)",
        `contact ${address}/openenv (environment.url)`,
      )
    })

  it("is opened with --trust, with exactly the announced effects", async () => {
    await bait({ environment: { name: "./lure.mjs" }, engine: { url: address } })
    const { stderr } = await run(openers.evaluate!, { trusted: true })
    expect(stderr).toContain(
      `With --trust it will load the module ${path("theirs/lure.mjs")} (environment); contact ${address}/`,
    )
    expect(await readFile(path("lured"), "utf8")).toBe("loaded\n")
    expect(received[0]).toContain(secrets.TINKER_API_KEY)
    await run(["config", "theirs/config.json", "--modules", "--set", "environment=./lure.mjs"])
    expect(await readFile(path("lured"), "utf8")).toBe("loaded\nloaded\n")
  })

  it("has its adapter exported with consent only, and never by its modules", async () => {
    await everywhere()
    const words = ["export", "theirs", "--as", "adapter", "--out", "adapter"]
    const { code, stderr } = await run(words)
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(
        /would contact http:\S+ \(engine\.url\), with the key in TINKER_API_KEY\. .*\[UNTRUSTED\]/,
      ),
    })
    untouched()
    expect((await run(words, { trusted: true })).code).not.toBe(0)
    expect(existsSync(path("lured"))).toBe(false)
    expect(received[0]).toContain(secrets.TINKER_API_KEY)
  })

  it("needs no consent if the command line contains the server or the module", async () => {
    await bait({ engine: { url: address } })
    const given = await run([...openers.evaluate!, "--set", "engine.url=http://127.0.0.1:9"])
    expect(given).toMatchObject({ code: 4, stderr: expect.stringMatching(/127\.0\.0\.1:9.*ENGINE_LOST/s) })
    // Another option beside the address does not make the address the user's.
    const beside = await run([...openers.evaluate!, "--set", "engine.rank=4"])
    expect(beside.stderr).toContain("[UNTRUSTED]")
    await bait({ engine: undefined, environment: used })
    const named = await run([...openers.evaluate!, "--set", "environment.name=number-line"])
    expect(named.code).toBe(2)
    untouched()
    await bait({
      environment: { name: "number-line" },
      agent: { name: "process", command: ["true"], directory: "theirs" },
    })
    const program = await run([...openers.evaluate!, "--set", `agent.command=["node", "-e", "0"]`])
    expect(program.stderr).toContain("[UNTRUSTED]")
    untouched()
  })

  it("can use the server of TINKER_BASE_URL, which the key belongs to", async () => {
    await bait({ engine: { url: `${address}/` } })
    const env = { ...secrets, TINKER_BASE_URL: address }
    await gigpo(openers.evaluate!, { cwd: folder, env })
    expect(received[0]).toContain(secrets.TINKER_API_KEY)
    received = []
    const other = await gigpo(openers.evaluate!, {
      cwd: folder,
      env: { ...env, TINKER_BASE_URL: "https://elsewhere.test" },
    })
    expect(other.stderr).toContain("[UNTRUSTED]")
    untouched()
  })

  it("writes only to its own folder", async () => {
    await bait({ run: "own/run" })
    const { code, stderr } = await run(["train", "theirs/config.json", "--overwrite"])
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/write to the folder .*own\/run \(run\)/),
    })
    const cloned = await run(["sft", "theirs/config.json", "--in-place"])
    expect(cloned.stderr).toMatch(/write to the folder .*own\/model \(model\)/)
  })

  it("is recognized by its folder, too, if its configuration does not show that it belongs to a run", async () => {
    await bait({ environment: { ...used }, gigpo: undefined })
    for (const name of ["config.json", "config.yaml"]) {
      await cp(path("theirs/config.json"), path("theirs", name)).catch(() => {})
      expect((await run(["evaluate", `theirs/${name}`])).stderr).toContain("[UNTRUSTED]")
    }
    untouched()
  })

  it("needs no consent where it was created, but as a copy elsewhere", async () => {
    const environment = { use: path("mine.mjs") }
    await mkdir(path("node_modules"))
    await symlink(join(import.meta.dirname, "../.."), path("node_modules/gigpo"))
    await writeFile(path("mine.mjs"), await readFile(join(import.meta.dirname, "guess.mjs"), "utf8"))
    const made = await run(["init", "./mine.mjs", "made", ...tiny])
    expect(made).toMatchObject({ code: 0 })
    expect(await run(["train", "made/config.yaml"])).toMatchObject({ code: 0, stderr: "" })
    expect((await read("made/run/config.json")).environment).toMatchObject(environment)
    const more = ["--resume", "--set", "training.iterations=7"]
    expect(await run(["train", "made/run/config.json", ...more])).toMatchObject({ code: 0, stderr: "" })
    expect(await run(["evaluate", "made/run/config.json"])).toMatchObject({ code: 0 })
    await cp(path("made/run"), path("copied"), { recursive: true })
    expect((await run(["evaluate", "copied/config.json"])).stderr).toContain("[UNTRUSTED]")
    expect(await run(["evaluate", "copied/config.json"], { trusted: true })).toMatchObject({ code: 0 })
    // Changed by another hand.
    await bait({ seed: 7 }, "made/run")
    expect((await run(["evaluate", "made/run/config.json"])).stderr).toContain("[UNTRUSTED]")
  })
})
