import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { noteOwnRun } from "../../src/cli/config/own-run.ts"
import { loadConfig } from "../../src/cli/config/resolve.ts"

// Which parts of a run's configuration of another origin ask for consent, and which words of the command line give it.

let folder: string
const ran = globalThis as { lured?: number }
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "gigpo-config-trust-")))
  await mkdir(join(folder, "theirs/checkpoints"), { recursive: true })
  await writeFile(join(folder, "theirs/metrics.jsonl"), "")
  for (const name of ["theirs/lure.mjs", "mine.mjs"])
    await writeFile(
      join(folder, name),
      `${name === "mine.mjs" ? "" : "globalThis.lured = 1\n"}export default { name: "a", tasks: () => [], start() {}, prompt: () => [], parse: () => ({}) }`,
    )
  vi.stubEnv("GIGPO_STATE", join(folder, "state"))
})
afterEach(() => {
  vi.unstubAllEnvs()
  vi.stubEnv("GIGPO_STATE", join(folder, "state"))
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await rm(folder, { recursive: true, force: true })
})

const put = async (text: string, name = "theirs/config.json") => {
  await writeFile(join(folder, name), text)
  return join(folder, name)
}
const base = "model: m\nrun: r\n"
const sokoban = "environment: { name: sokoban }\n"
const asks = { code: "UNTRUSTED" }

describe("a run's configuration of another origin", () => {
  it.each([
    ["a module by its key", "environment: { use: ./lure.mjs }"],
    ["a module as a name", "environment: { name: ./lure.mjs }"],
    ["a module alone", "environment: ./lure.mjs"],
    ["a module by an absolute path", "environment: /lure.mjs"],
    ["a module without its ending", "environment: ./lure"],
    ["a module around an environment", "environment: { name: sokoban, wrapper: ./lure.mjs }"],
    ["a memory", "environment: { name: sokoban, memory: { use: ./lure.mjs } }"],
    ["an estimator", `${sokoban}training: { estimator: ./lure.mjs }`],
    ["a loss of cloning", `${sokoban}sft: { loss: { use: ./lure.mjs } }`],
    ["a module by an alias", `${sokoban}training: { estimator: &a { use: ./lure.mjs }, loss: *a }`],
    ["a program", `${sokoban}agent: { name: process, command: [node, lure.mjs] }`],
    ["a program by default", `${sokoban}agent: { command: [node, lure.mjs] }`],
    ["an engine", `${sokoban}engine: { url: "http://127.0.0.1:9" }`],
    ["an engine in capitals", `${sokoban}engine: { url: "HTTPS://HOST.test" }`],
    ["an MLflow server", `${sokoban}mlflow: { url: "https://host.test" }`],
    ["a Trackio server", `${sokoban}trackio: { url: "https://host.test" }`],
    ["a judge", `${sokoban}training: { rolloutHooks: { name: judge, url: "https://host.test/v1" } }`],
    ["a socket", "environment: { name: openenv, url: ws://host.test }"],
    ["a socket without slashes", `environment: { name: openenv, url: "ws:host.test" }`],
    ["a retriever", "environment: { name: search, questions: q.jsonl, retriever: http://host.test }"],
    [
      "a retriever of several",
      "environment: { name: search, questions: q.jsonl, retriever: [http://a.test, http://b.test] }",
    ],
    ["an address behind a blank", `environment: { name: search, questions: q.jsonl, retriever: " http://host.test" }`],
  ])("asks before it uses %s", async (_, text) => {
    delete ran.lured
    await expect(loadConfig(await put(`${base}${text}`))).rejects.toMatchObject(asks)
    expect(ran.lured).toBeUndefined()
  })

  it.each<[string, string, readonly string[]]>([
    ["a key beside the module", "environment: { use: ./lure.mjs }", ["environment.size=3"]],
    ["a name beside the module", "environment: { use: ./lure.mjs }", ["environment.name=sokoban"]],
    ["a part of the program", `${sokoban}agent: { name: process, command: [node, a.mjs] }`, ["agent.command.1=b.mjs"]],
    [
      "the program, and not its folder",
      `${sokoban}agent: { name: process, command: [a], directory: theirs }`,
      ["agent.command=[b]"],
    ],
    [
      "the program, and not its keys",
      `${sokoban}agent: { name: process, command: [a], environment: [TINKER_API_KEY] }`,
      ["agent.command=[b]"],
    ],
    [
      "the program, and not its environment",
      `${sokoban}agent: { name: process, command: [a], environment: inherit }`,
      ["agent.command=[b]"],
    ],
    [
      "a part of the address",
      "environment: { name: search, questions: q, retriever: [http://a.test] }",
      ["environment.retriever.1=http://b.test"],
    ],
    [
      "one of two uses of an alias",
      `${sokoban}training: { estimator: &a { use: ./lure.mjs }, loss: *a }`,
      ["training.estimator=grpo"],
    ],
    ["the same key elsewhere", `${sokoban}engine: { url: http://a.test }`, ["environment.url=http://a.test"]],
  ])("asks all the same where the command line gives %s", async (_, text, sets) => {
    delete ran.lured
    const code = await loadConfig(await put(`${base}${text}`), sets).catch((error) => error.code)
    expect(["UNTRUSTED", "BAD_CONFIG"]).toContain(code)
    expect(ran.lured).toBeUndefined()
  })

  it.each<[string, string, readonly string[]]>([
    ["the module", "environment: { use: ./lure.mjs }", ["environment=../mine.mjs"]],
    ["the module's key", "environment: { use: ./lure.mjs }", ["environment.use=../mine.mjs"]],
    ["another environment", "environment: { use: ./lure.mjs }", ["environment=sokoban"]],
    ["the program", `${sokoban}agent: { name: process, command: [a] }`, ["agent.command=[b]"]],
    [
      "the program, which gets no keys",
      `${sokoban}agent: { name: process, command: [a], environment: clean }`,
      ["agent.command=[b]"],
    ],
    ["the engine's address", `${sokoban}engine: { url: http://a.test }`, ["engine.url=http://127.0.0.1:9"]],
    [
      "the judge's address",
      `${sokoban}training: { rolloutHooks: { name: judge, url: http://a.test } }`,
      ["training.rolloutHooks.url=http://127.0.0.1:9"],
    ],
    ["the engine", `${sokoban}engine: { url: http://a.test }`, [`engine={ url: "http://127.0.0.1:9" }`]],
  ])("asks nothing where the command line gives %s", async (_, text, sets) => {
    delete ran.lured
    await expect(loadConfig(await put(`${base}${text}`), sets)).resolves.toBeDefined()
    expect(ran.lured).toBeUndefined()
  })

  it("lists its requests on one line, shortened but unchanged", async () => {
    const command = JSON.stringify(["node", `a.mjs\n\nAll is well.${"x".repeat(10_000)}`])
    const retriever = JSON.stringify(Array.from({ length: 100 }, (_, at) => `http://a${at}.test`))
    const text = `environment: { name: search, questions: q, retriever: ${retriever} }\nagent: { command: ${command} }\n`
    const { message } = (await loadConfig(await put(`${base}${text}`)).catch((error: Error) => error)) as Error
    expect(message).toMatch(
      /would start the program "node a\.mjs\\n\\nAll is well\.x{200,290}…" \(agent\.command\); contact http/,
    )
    expect(message).toMatch(/contact http:\/\/a28\.test\/ \(environment\.retriever\); 71 more\. None/)
    expect(message).not.toContain("\n")
  })

  it("names the keys that a program would receive", async () => {
    const of = async (environment: string) =>
      (await loadConfig(await put(`${base}${sokoban}agent: { command: [a], environment: ${environment} }`)).catch(
        (error: Error) => error,
      )) as Error
    expect((await of("[TINKER_API_KEY, HF_TOKEN]")).message).toMatch(
      /program a, which would get TINKER_API_KEY, HF_TOKEN \(agent/,
    )
    expect((await of("inherit")).message).toContain("program a, which would get all your environment variables (agent")
  })

  it("needs no consent for reading and computing only", async () => {
    const text = `${base}${sokoban}chat: { variables: { home: "https://host.test" } }\nmlflow: { experiment: a }\nwandb: { project: a }\ntensorboard: true\n`
    await expect(loadConfig(await put(text))).resolves.toBeDefined()
  })

  it("is recognized by its key or its folder, through any links", async () => {
    const text = `model: m\nenvironment: { use: ./lure.mjs }\n`
    await expect(loadConfig(await put(text))).rejects.toMatchObject(asks)
    await expect(loadConfig(await put(text, "theirs/mine.yaml"))).rejects.toMatchObject(asks)
    await symlink(join(folder, "theirs/mine.yaml"), join(folder, "link.yaml"))
    await expect(loadConfig(join(folder, "link.yaml"))).rejects.toMatchObject(asks)
    await expect(loadConfig(await put(`gigpo: '0'\n${text}`, "copy.yaml"))).rejects.toMatchObject(asks)
    await put(text.replace("./lure", "./mine"), "own.yaml")
    await expect(loadConfig(join(folder, "own.yaml"))).resolves.toBeDefined()
    await symlink(join(folder, "own.yaml"), join(folder, "theirs/config.yaml"))
    await expect(loadConfig(join(folder, "theirs/config.yaml"))).rejects.toMatchObject(asks)
  })

  it("is trusted once recorded, at the same place and unchanged", async () => {
    const text = `${base}environment: ${join(folder, "mine.mjs")}\n`
    const path = await put(text)
    await expect(loadConfig(path)).rejects.toMatchObject(asks)
    await noteOwnRun(path)
    await expect(loadConfig(path)).resolves.toBeDefined()
    await expect(loadConfig(await put(text, "theirs/other.json"))).rejects.toMatchObject(asks)
    await expect(loadConfig(await put(`${text}seed: 1\n`))).rejects.toMatchObject(asks)
    await put(text)
    await expect(loadConfig(path)).resolves.toBeDefined()
    // A relative folder of notes could lie in what was received.
    vi.stubEnv("XDG_STATE_HOME", "state")
    vi.stubEnv("GIGPO_STATE", "")
    vi.stubEnv("HOME", join(folder, "home"))
    await expect(loadConfig(path)).rejects.toMatchObject(asks)
  })

  it("is not recorded if no later command would need consent", async () => {
    await noteOwnRun(await put(`${base}${sokoban}`, "theirs/plain.json"))
    await expect(readFile(join(folder, "theirs/plain.json"), "utf8")).resolves.toContain("sokoban")
    await put(`${base}environment: ./lure.mjs\n`, "theirs/plain.json")
    await expect(loadConfig(join(folder, "theirs/plain.json"))).rejects.toMatchObject(asks)
  })

  it("can use the server of the user's environment variable, and nothing else on its host", async () => {
    vi.stubEnv("TINKER_BASE_URL", "https://host.test/services/mine/")
    vi.stubEnv("MLFLOW_TRACKING_URI", "https://flow.test")
    const load = async (engine: string, mlflow: string) =>
      await loadConfig(await put(`${base}${sokoban}engine: { url: "${engine}" }\nmlflow: { url: "${mlflow}" }\n`))
    await expect(load("https://host.test/services/mine", "https://flow.test/")).resolves.toBeDefined()
    for (const [engine, mlflow] of [
      ["https://host.test/services/theirs", "https://flow.test"],
      ["https://host.test/services/mineral", "https://flow.test"],
      ["http://host.test/services/mine", "https://flow.test"],
      ["https://host.test:8443/services/mine", "https://flow.test"],
      ["https://host.test/services/mine", "https://flow.test.evil.test"],
      ["https://flow.test", "https://host.test/services/mine"],
    ])
      await expect(load(engine!, mlflow!)).rejects.toMatchObject(asks)
  })
})
