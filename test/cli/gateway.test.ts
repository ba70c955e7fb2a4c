import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, type GigpoOptions, gigpo, readRun, tiny } from "./gigpo.ts"

// Says which way to go from one number to another, as often as it takes; what it draws comes from its seed.
const program = `
import { appendFileSync, readFileSync } from "node:fs"
const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key, GIGPO_MODEL: model, GIGPO_TASK, GIGPO_SEED, GIGPO_CONTROL_FD } = process.env
const controlKey = readFileSync(Number(GIGPO_CONTROL_FD), "utf8").trim()
const { from, to } = JSON.parse(GIGPO_TASK)
const post = async (path, body) => {
  const authorization = "Bearer " + (path.startsWith("/gigpo/") ? controlKey : key)
  const headers = { authorization, "content-type": "application/json" }
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(await response.text())
  return await response.json()
}
let at = from + (GIGPO_SEED % 2)
for (let turn = 0; turn < 3 && at !== to; turn++) {
  await post("/gigpo/step", { anchor: at + " to " + to })
  const { choices } = await post("/chat/completions", { model, messages: [{ role: "user", content: at + " to " + to }] })
  at += choices[0].message.content.length % 2 === 0 ? 1 : -1
}
if (process.argv.includes("--hang")) {
  appendFileSync("hanging", process.pid + "\\n")
  process.on("SIGTERM", () => {})
  setInterval(() => {}, 1000)
} else console.log(JSON.stringify({ reward: Number(at === to), success: at === to, metrics: { at } }))
`

/** The same as a function. */
const own = `
export default async ({ from, to }, { openai, model, step }) => {
  step({ anchor: from + " to " + to })
  const headers = { authorization: "Bearer " + openai.apiKey, "content-type": "application/json" }
  const body = JSON.stringify({ model, messages: [{ role: "user", content: from + " to " + to }] })
  const response = await openai.fetch(openai.baseURL + "/chat/completions", { method: "POST", headers, body })
  const { choices } = await response.json()
  return { reward: choices[0].message.content.length / 8 }
}
`

describe.skipIf(!built)("programs that play (needs dist: npm run build:ts)", () => {
  const control = ["--set", "agent.control=descriptor"]
  let folder: string
  const run = (words: string[], options: Partial<GigpoOptions> = {}) => gigpo(words, { cwd: folder, ...options })
  const gateway = (name: string, more: string[] = [], options: Partial<GigpoOptions> = {}, flags: string[] = []) =>
    run(
      ["gateway", "config.yaml", "-s", `run=${name}`, ...control, ...more, "--", "node", "agent.mjs", ...flags],
      options,
    )
  const refuse = async (message: RegExp, ...words: string[]) => {
    const { code, stderr } = await run(words)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) })
  }

  const read = (name: string) => readRun(join(folder, name))

  /** Programs that hang and still run. Zombie processes do not count. */
  async function hanging(): Promise<number[]> {
    const pids = (await readFile(join(folder, "hanging"), "utf8")).trim().split("\n").map(Number)
    const states = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => ") X ")))
    return pids.filter((_, index) => !/\) [ZX] /.test(states[index]!))
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-gateway-"))
    const tasks = Array.from({ length: 40 }, (_, i) => JSON.stringify({ from: i % 6, to: (i * 5) % 7 }))
    await writeFile(join(folder, "tasks.jsonl"), `${tasks.join("\n")}\n`)
    await writeFile(join(folder, "agent.mjs"), program)
    await writeFile(join(folder, "own.mjs"), own)
    expect(await run(["init", "sokoban", "small", ...tiny])).toMatchObject({ code: 0 })
    const training = [
      "iterations: 4, groups: 2, groupSize: 3, checkpointEvery: 1",
      "rollout: { maxCompletionTokens: 8, concurrency: 4 }, evaluation: { every: 2, tasks: 2 }",
    ]
    const config = `model: small/model\nenvironment: { name: tasks, tasks: tasks.jsonl }\ntraining: { ${training.join(", ")} }\n`
    await writeFile(join(folder, "config.yaml"), config)
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  it("trains, gives the same results at another concurrency, is evaluated, and resumes after a stop", async () => {
    const whole = await gateway("whole")
    expect(whole).toMatchObject({ code: 0, stderr: "" })
    expect(whole.stdout).toMatch(/^iteration 4\/4 {2}success /m)
    expect(whole.stdout).toMatch(/To evaluate it: gigpo evaluate whole\/config\.json --model whole\/model/)
    const { metrics, model } = await read("whole")
    expect(JSON.stringify(metrics)).toMatch(/"episode\/at"/)
    expect(JSON.stringify(metrics)).toMatch(/"episode\/failed",0\]/)
    expect(await run(["evaluate", "whole/config.json", "--model", "whole/model"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^whole\/model on tasks: 2 held-out tasks, one episode each\n(.*\n)* {2}at /),
    })

    let sent = false
    const stopped = await gateway("stopped", ["--set", "training.rollout.concurrency=1"], {
      onOutput(stdout, kill) {
        if (sent || !/^iteration 2\/4/m.test(stdout)) return
        sent = true
        kill("SIGINT")
      },
    })
    expect(stopped).toMatchObject({
      code: 130,
      stdout: expect.stringContaining("gigpo train stopped/config.json --resume"),
    })
    // The run stores its agent, so it is resumed like any run.
    expect(await run(["train", "stopped/config.json", "--resume"])).toMatchObject({ code: 0, stderr: "" })
    const resumed = await read("stopped")
    expect(resumed.metrics).toEqual(metrics)
    expect(resumed.model.equals(model)).toBe(true)
    await refuse(
      /agent\.command was \["node","agent\.mjs"\] and is now \["node","own\.mjs"\]/,
      ...["gateway", "stopped/config.json", "--resume", "--", "node", "own.mjs"],
    )
  })

  it("says before how often states repeat: of what the first iteration then plays", async () => {
    const report = await run(["anchors", "config.yaml", "--json", ...control, "--", "node", "agent.mjs"])
    expect(report).toMatchObject({ code: 0, stderr: "" })
    const { environment, groups, episodes, states, steps } = JSON.parse(report.stdout)
    const { metrics } = JSON.parse((await readFile(join(folder, "whole/metrics.jsonl"), "utf8")).split("\n")[1]!)
    expect({ environment, groups, episodes }).toEqual({ environment: "tasks", groups: 2, episodes: 6 })
    expect(states).toBe(metrics["step-group/count"])
    expect(steps / episodes).toBeCloseTo(metrics["episode/steps"], 10)
    const shown = await run(["anchors", "config.yaml", "--groups", "1", "-s", "agent=./own.mjs"])
    expect(shown).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^ {2}groups {6}1, \d with all returns equal\n(.*\n)+ +3 × in 3 episodes: "\d to \d"\n(All episodes have a single step|The epi)/,
      ),
    })
  })

  it("plays with an agent of one's own from a module, which a run knows again", async () => {
    const flags = ["--set", "agent=./own.mjs", "--set", "run=own", "--set", "training.iterations=2"]
    expect(await run(["train", "config.yaml", ...flags])).toMatchObject({ code: 0, stderr: "" })
    const { agent } = JSON.parse(await readFile(join(folder, "own/config.json"), "utf8"))
    expect(agent).toEqual({ use: join(folder, "own.mjs"), sha256: expect.any(String), normalize: false })
    expect(await run(["config", "own/config.json"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^agent:\n(.*\n){3} {2}use: .*own\.mjs$/m),
    })
    await writeFile(join(folder, "own.mjs"), `${own}// changed\n`)
    await refuse(/the module .*own\.mjs has changed since the start of the run/, "train", "own/config.json", "--resume")
    await writeFile(join(folder, "noagent.mjs"), "export default { play() {} }")
    await refuse(
      /noagent\.mjs: its default export must be an agent: a function/,
      ...["train", "config.yaml", "--set", "agent=./noagent.mjs", "--set", "run=none"],
    )
  })

  it("is shown by an example, which gigpo init copies", async () => {
    const small = ["training.iterations=1", "training.groups=2", "training.groupSize=2", "training.evaluation.tasks=2"]
    const sets = small.flatMap((set) => ["--set", set])
    expect(await run(["init", "gateway", "demo"])).toMatchObject({ code: 0 })
    expect(await run(["sft", "demo/config.yaml", "--in-place"])).toMatchObject({ code: 0 })
    const agent = join(import.meta.dirname, "../../examples/gateway/agent.mjs")
    // By the program that it names, and by one that is named for it.
    const both = [["train", "demo/config.yaml"], ["gateway", "demo/config.yaml"]] // biome-ignore format: one line
    for (const [index, words] of both.entries()) {
      const trained = await run([
        ...words,
        "--set",
        `run=demo-${index}`,
        ...sets,
        ...(index ? ["--", "node", agent] : []),
      ])
      expect(trained).toMatchObject({ code: 0, stdout: expect.stringMatching(/^iteration 1\/1 {2}success /m) })
      expect(JSON.stringify((await read(`demo-${index}`)).metrics)).toMatch(/"episode\/failed",0\]/)
    }
    expect(await readFile(join(folder, "demo/config.yaml"), "utf8")).toMatch(/name: .*examples\/gateway\/line\.mjs\n/)
  })

  it("is rejected before anything is changed without a player, or if the program does not exist", async () => {
    await refuse(/No agent is configured. Give one: gigpo gateway config\.yaml -- node agent\.mjs, or set agent in config/, "gateway", "config.yaml") // biome-ignore format: one line
    await refuse(/config\.yaml, line 2: tasks only provides tasks, which an agent must play/, "train", "config.yaml")
    await refuse(/There is no executable program missing/, "gateway", "config.yaml", "--", "missing")
    await refuse(/agent\.comand is not an option; did you mean agent\.command/, "train", "config.yaml", "--set", "agent.comand=[sh]") // biome-ignore format: one line
    expect(await readdir(folder)).not.toContain("runs")
  })

  it.each([1, 2])("ends every program that still runs, by Ctrl-C (%i times)", async (times) => {
    await rm(join(folder, "hanging"), { force: true })
    const stop = new AbortController()
    const { code } = await gateway(
      `hanging-${times}`,
      ["--set", "agent.grace=0.2"],
      {
        onStart: async (child) => {
          // Once some hang, which heed no SIGTERM.
          while (!stop.signal.aborted) {
            const found = await readFile(join(folder, "hanging"), "utf8").catch(() => "")
            if (found.split("\n").length > 2) break
          }
          child.kill("SIGINT")
          if (times === 2) child.kill("SIGTERM")
        },
      },
      ["--hang"],
    )
    stop.abort()
    // Of two that are pending together the system may deliver either first; the second one ends it.
    expect(times === 1 ? [130] : [130, 143]).toContain(code)
    // The second signal does not wait: killed processes end a moment later.
    await expect.poll(hanging, { timeout: 20_000 }).toEqual([])
  })
})
