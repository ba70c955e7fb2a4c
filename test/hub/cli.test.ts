import { mkdtempSync } from "node:fs"
import { cp, readdir, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { built, type GigpoOptions, gigpo, tiny } from "../cli/gigpo.ts"
import { freshHome } from "./cache-folder.ts"
import { commit, type Hub, someModel, startHub } from "./hub-server.ts"

let server: Hub
let cwd: string
let files: Record<string, Buffer>
const small = [...tiny, "--set", "training.iterations=2"]

beforeAll(async () => {
  if (!built) return
  cwd = mkdtempSync(join(tmpdir(), "gigpo-hub-cli-"))
  const made = await gigpo(["init", "sokoban", "demo", ...tiny], { cwd })
  expect(made).toMatchObject({ code: 0 })
  const folder = join(cwd, "demo", "model")
  const names = (await readdir(folder)).filter((name) => name !== "gigpo.json")
  files = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))])))
  server = await startHub({ "me/tiny": { files } })
})
afterAll(async () => {
  await server?.[Symbol.asyncDispose]()
})

/** A cache of its own. */
const freshCache = () => {
  const HF_HOME = freshHome(server.url)
  vi.unstubAllEnvs()
  return { HF_HOME, HF_ENDPOINT: server.url }
}
const run = (words: readonly string[], env: Record<string, string>, options: Partial<GigpoOptions> = {}) =>
  gigpo(words, { cwd, env, ...options })
const train = (to: string) => ["train", "demo/config.yaml", ...small, "--set", "model=me/tiny", "--set", `run=${to}`]
const size = /^Downloading me\/tiny@c{40}: \d+ files, \d+ MiB\.$/m

describe.skipIf(!built)("a name on the Hub in commands", () => {
  it("chat prints the size first, then downloads, and later uses the cache", async () => {
    const env = freshCache()
    const first = await run(["chat", "me/tiny", "-n", "4"], env, { input: "Hi" })
    expect(first).toMatchObject({ code: 0, stderr: expect.stringMatching(size) })
    const second = await run(["chat", `me/tiny@${commit}`, "-n", "4"], { ...env, HF_HUB_OFFLINE: "1" }, { input: "Hi" })
    expect(second).toMatchObject({ code: 0, stderr: expect.not.stringMatching(/Downloading/) })
  })

  it("train records name and commit, and continues with them without a network", async () => {
    const env = freshCache()
    expect(await run(train("runs/named"), env)).toMatchObject({ code: 0 })
    const config = JSON.parse(await readFile(join(cwd, "runs/named/config.json"), "utf8"))
    expect(config.model).toBe(`me/tiny@${commit}`)
    const more = [...train("runs/named"), "--set", "training.iterations=3", "--resume"]
    expect(await run(more, { ...env, HF_HUB_OFFLINE: "1" })).toMatchObject({ code: 0 })
    const evaluated = await run(["evaluate", "runs/named/config.json", "--set", "training.evaluation.tasks=2"], env)
    expect(evaluated).toMatchObject({ code: 0, stdout: expect.stringContaining("2 held-out tasks") })
  })

  it("of an adapter's base is recorded with the weights that stay as they are, and in the adapter", async () => {
    const env = freshCache()
    const lora = ["--set", "lora.rank=2", "--set", "training.loss.klWeight=0.1", "--set", "training.checkpointEvery=1"]
    expect(await run([...train("runs/adapter"), ...lora], env)).toMatchObject({ code: 0 })
    const { frozen } = JSON.parse(await readFile(join(cwd, "runs/adapter/config.json"), "utf8"))
    expect(frozen).toMatchObject({ name: `me/tiny@${commit}`, base: expect.stringMatching(/^[0-9a-f]{64}$/) })
    const checkpoint = join(cwd, "runs/adapter/checkpoints/iteration-2")
    const adapter = JSON.parse(await readFile(join(checkpoint, "adapter_config.json"), "utf8"))
    expect(adapter).toMatchObject({ base_model_name_or_path: "me/tiny", revision: commit })
    // In another place, with another cache: the base is got by its name.
    await rm(env.HF_HOME, { recursive: true })
    const spoken = await run(["chat", checkpoint, "-n", "4"], freshCache(), { input: "Hi" })
    expect(spoken).toMatchObject({ code: 0 })
  })

  it("estimate downloads no weights", async () => {
    const env = freshCache()
    const outcome = await run(
      [
        "estimate",
        "demo/config.yaml",
        ...small,
        "--set",
        "model=me/tiny",
        "--steps",
        "3",
        "--prompt-tokens",
        "9",
        "--completion-tokens",
        "5",
      ],
      env,
    )
    expect(outcome).toMatchObject({ code: 0, stderr: expect.stringMatching(size) })
    const snapshot = await readdir(join(env.HF_HOME, "hub/models--me--tiny/snapshots", commit))
    expect(snapshot).toContain("config.json")
    expect(snapshot.filter((name) => name.endsWith(".safetensors"))).toEqual([])
  })

  it("of a run from elsewhere is not downloaded without --trust", async () => {
    const env = freshCache()
    expect(await run(train("runs/theirs"), env)).toMatchObject({ code: 0 })
    await cp(join(cwd, "runs/theirs"), join(cwd, "runs/copy"), { recursive: true })
    const state = { XDG_STATE_HOME: mkdtempSync(join(tmpdir(), "gigpo-state-")), GIGPO_STATE: "" }
    const evaluate = ["evaluate", "runs/copy/config.json", "--set", "training.evaluation.tasks=2"]
    server.asked.length = 0
    const refused = await run(evaluate, { ...freshCache(), ...state })
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /would download the model me\/tiny@c{40} from the Hugging Face Hub \(model\).*\[UNTRUSTED\]/s,
      ),
    })
    expect(server.asked).toEqual([])
    expect(await run([...evaluate, "--trust"], { ...freshCache(), ...state })).toMatchObject({ code: 0 })
  })

  it("sft does not write into the cache", async () => {
    const outcome = await run(
      ["sft", "demo/config.yaml", ...small, "--set", "model=me/tiny", "--in-place"],
      freshCache(),
    )
    expect(outcome).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("use --out <folder> instead of --in-place"),
    })
  })

  it("Ctrl-C ends a download, and the next continues it", async () => {
    const env = freshCache()
    server.fault = ({ to }) => (to === "store" ? "stall" : undefined)
    let stopping = false // a second Ctrl-C would end it at once
    const stopped = await run(["chat", "me/tiny"], env, {
      input: "Hi",
      onErrors: (stderr, kill) => {
        if (stopping || !size.test(stderr)) return
        stopping = true
        setTimeout(() => kill("SIGINT"), 500)
      },
    })
    server.fault = undefined
    expect(stopped.code).toBe(130)
    expect(await run(["chat", "me/tiny", "-n", "2"], env, { input: "Hi" })).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/of which \d+ MiB are missing/),
    })
  })

  it("a mistake ends with one sentence and exit code 2", async () => {
    const missing = await run(["chat", "me/none"], freshCache(), { input: "Hi" })
    expect(missing).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^gigpo: There is no local folder me\/none and .* \[HUB_REJECTED\]\n$/),
    })
  })

  it("models lists the cache, and which models run", async () => {
    const env = freshCache()
    expect(await run(["models"], env)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("There are no models in"),
    })
    server.repositories["you/other"] = { files: someModel(), revisions: { v2: "d".repeat(40) } }
    await run(["chat", "me/tiny", "-n", "2"], env, { input: "Hi" })
    expect(await run(["chat", "you/other@v2"], env, { input: "Hi" })).toMatchObject({ code: 2 })
    const { code, stdout } = await run(["models"], env)
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^MODEL +REVISION +SIZE +SUPPORTED\nme\/tiny +main c{12} +\d+ MiB +yes: Qwen3\nyou\/other +v2 d{12} +0 MiB +no: config\.json/,
    )
    const listed = JSON.parse((await run(["models", "--json"], env)).stdout)
    expect(listed).toMatchObject([{ repository: "me/tiny", commit, refs: ["main"], runs: true }, { runs: false }])
  })
})
