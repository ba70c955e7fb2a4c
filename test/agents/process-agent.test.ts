import { existsSync } from "node:fs"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { AgentContext } from "../../src/agents/agent.ts"
import { type ProcessAgentOptions, processAgent } from "../../src/agents/process-agent.ts"
import { allGroupsEnded } from "../../src/agents/process-group.ts"
import type { AgentResult } from "../../src/endpoint/posted.ts"
import { parseJson } from "../../src/json/text.ts"
import { Random } from "../../src/util/random.ts"
import { playProgram } from "../endpoint/play-program.ts"

let folder = ""
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-programs-"))
})
afterAll(async () => {
  await allGroupsEnded()
  await rm(folder, { recursive: true, force: true })
})

const sh = (script: string, options: Partial<ProcessAgentOptions> = {}) =>
  processAgent({ command: ["sh", "-c", script], directory: folder, grace: 0.2, ...options })

function context(signal: AbortSignal = new AbortController().signal): AgentContext {
  return {
    openai: { baseURL: "http://127.0.0.1:9/v1", apiKey: "key", fetch },
    anthropic: { baseURL: "http://127.0.0.1:9", apiKey: "key", fetch },
    ...{ model: "policy", temperature: 0.4, controlKey: "control", index: 3, member: 1, random: new Random(5), signal },
    step() {},
    reward() {},
    postedResult: () => undefined,
  }
}

const play = (script: string, task: unknown = "task") => sh(script)(task, context())

/** The number that a program has written into a file, as soon as it is there. */
async function numberIn(name: string): Promise<number> {
  const path = join(folder, name)
  while (!existsSync(path) || (await readFile(path, "utf8")).trim() === "") await setTimeout(5)
  return Number(await readFile(path, "utf8"))
}

/** Whether a process runs. A zombie process does not count. */
async function runs(pid: number): Promise<boolean> {
  const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined)
  return state !== undefined && !/\) [ZX] /.test(state)
}

describe("a program that plays an episode", () => {
  it.each<[script: string, end: AgentResult | null]>([
    ["echo thinking; echo 0.5", { reward: 0.5, metrics: {} }],
    ["printf -- '-1'", { reward: -1, metrics: {} }],
    ["echo 2; echo; printf ' \\n\\n'", { reward: 2, metrics: {} }],
    ["echo null", null],
    [`echo '{"reward": null}'`, null],
    [`echo '{"reward":1,"success":true,"metrics":{"turns":3}}'`, { reward: 1, success: true, metrics: { turns: 3 } }],
    [`echo '{"reward":1,"success":0}'`, { reward: 1, success: false, metrics: {} }],
    ["echo 1 | tr 1 3; exit 0", { reward: 3, metrics: {} }],
  ])("gives its reward as the last line: %s", async (script, end) => {
    expect(await play(script)).toEqual(end)
  })

  it.each<[script: string, message: RegExp]>([
    ["true", /^sh -c true reported no reward; print a number, \{"reward": …\} or null as the last line, or POST/],
    ["echo 1; echo done", /^the last line that .* printed is not a reward: "done"; print/],
    ["echo NaN", /is not a reward: "NaN"/],
    ["echo 1e999", /rewards must be finite numbers, but a step gave Infinity/],
    ["echo 1e300", /rewards must be at most/],
    [`echo '"1"'`, /give a number, \{"reward": …\} or null, not '1'/],
    ["echo true", /not true/],
    ["echo '[1]'", /not \[ 1 \]/],
    [`echo '{"score":1}'`, /: "score" is not known \(known: reward, success, metrics\)\.$/],
    [`echo '{"\\u001b[2J":1}'`, /: "\\x1b\[2J" is not known/],
    [`echo '{"reward":1,"metrics":{"a":"b"}}'`, /metrics must be finite numbers, but a is 'b'/],
    [`echo '{"reward":1,"metrics":[1]}'`, /metrics must be an object with at most 100 named numbers/],
    [
      `echo '{"reward":1,"metrics":{"\\u001b[2J":1}}'`,
      /names of metrics must be printable and at most 100 characters long/,
    ],
    [`echo '{"reward":1,"success":"yes"}'`, /success must be true or false/],
    ["exit 3", /^sh -c exit 3 ended with code 3$/],
    ["kill -9 $$", /ended by SIGKILL$/],
    ["echo 1; echo first >&2; echo last >&2; exit 1", /ended with code 1: first \| last$/],
  ])("costs its episode where it does not: %s", async (script, message) => {
    await expect(play(script)).rejects.toMatchObject({ name: "GigpoError", message: expect.stringMatching(message) })
  })

  it("finds its task, its key, where to call, and the PATH", async () => {
    const names =
      "OPENAI_BASE_URL OPENAI_API_KEY ANTHROPIC_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_MODEL ANTHROPIC_DEFAULT_HAIKU_MODEL " +
      "GIGPO_MODEL GIGPO_TEMPERATURE GIGPO_TASK GIGPO_EPISODE GIGPO_SEED NO_PROXY PATH"
    const script = `node -e 'require("fs").writeFileSync("found", JSON.stringify([process.env, require("fs").readFileSync(0, "utf8")]))'; echo 1`
    const seed = async () => {
      await play(script, { question: "a 'b' \u001b" })
      return JSON.parse(await readFile(join(folder, "found"), "utf8")) as [Record<string, string>, string]
    }
    const [env, stdin] = await seed()
    expect(JSON.parse(stdin)).toEqual({ question: "a 'b' \u001b" })
    expect(Object.fromEntries(names.split(" ").map((name) => [name, env[name]]))).toEqual({
      OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
      OPENAI_API_KEY: "key",
      ANTHROPIC_BASE_URL: "http://127.0.0.1:9",
      ANTHROPIC_API_KEY: "key",
      ANTHROPIC_MODEL: "policy",
      ANTHROPIC_DEFAULT_HAIKU_MODEL: "policy",
      GIGPO_MODEL: "policy",
      GIGPO_TEMPERATURE: "0.4",
      GIGPO_TASK: stdin,
      GIGPO_EPISODE: "3/1",
      GIGPO_SEED: expect.stringMatching(/^\d+$/),
      NO_PROXY: expect.stringMatching(/(^|,)127\.0\.0\.1$/),
      PATH: process.env.PATH,
    })
    expect((await seed())[0].GIGPO_SEED).toBe(env.GIGPO_SEED)
  })

  it("keeps the variables of Anthropic that it was given", async () => {
    process.env.ANTHROPIC_AUTH_TOKEN = "own"
    try {
      const script = "echo $ANTHROPIC_AUTH_TOKEN $ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY > own; echo 1"
      await sh(script, { environment: ["ANTHROPIC_AUTH_TOKEN"] })("task", context())
      expect(await readFile(join(folder, "own"), "utf8")).toBe("own\n")
      await sh(script)("task", context())
      expect(await readFile(join(folder, "own"), "utf8")).toBe("http://127.0.0.1:9 key\n")
    } finally {
      delete process.env.ANTHROPIC_AUTH_TOKEN
    }
  })

  it("gets a task that was read from JSON as it was written", async () => {
    const text = '{"id": 2512292042121000001, "10": 20.0, "2": [1e-07]}'
    const script = `node -e 'require("fs").writeFileSync("found", process.env.GIGPO_TASK + require("fs").readFileSync(0, "utf8"))'; echo 1`
    await play(script, parseJson(text))
    expect(await readFile(join(folder, "found"), "utf8")).toBe(text + text)
  })

  it("gets a long task as its standard input alone, and need not read it", async () => {
    const long = "x".repeat(2 ** 20)
    expect(await play('[ -z "$GIGPO_TASK" ] && wc -c', long)).toMatchObject({ reward: 2 ** 20 + 2 })
    expect(await play("exec 0<&-; echo 1", long)).toMatchObject({ reward: 1 })
    await expect(play("echo 1", 1n)).rejects.toThrow(/task as JSON, but this task cannot be serialized/)
  })

  it("can print any output: only the last line is kept, and escape codes are shown as text", async () => {
    const flood = (after: string) => `head -c 100000000 /dev/zero | tr '\\0' a; ${after}`
    expect(await play(flood("echo; echo 1"))).toMatchObject({ reward: 1 })
    await expect(play(flood("true"))).rejects.toThrow(/the last line that .* printed is too long to be a reward/)
    await expect(play(flood("echo; printf '\\n \\n'"))).rejects.toThrow(/too long to be a reward/)
    const error = await play(`printf '\\033[2Jx\\202\\n' >&2; ${flood("true")} >&2; exit 1`).catch((error) => error)
    expect(error.message.length).toBeLessThan(500)
    const shown = await play("printf '\\033]0;owned\\007 \\342\\200\\256\\n' >&2; exit 1").catch((error) => error)
    expect(shown.message).toMatch(/: \\x1b\]0;owned\\x07 \\u\{202e\}$/)
    await expect(play("printf '\\033[2J\\n'")).rejects.toThrow(/is not a reward: "\\u001b\[2J";/)
  })

  it("is named without its secrets where it fails", async () => {
    const fails = processAgent({
      command: ["sh", "-c", "exit 3", "--api-key", "hunter2", "-u", "me:hunter2"],
      directory: folder,
    })
    await expect(fails("task", context())).rejects.toThrow(/sh -c exit 3 --api-key \[redacted\] -u me:\[redacted\]/)
    await expect(fails("task", context())).rejects.not.toThrow("hunter2")
  })

  it("is terminated with its child processes, at its end and when it is no longer needed", async () => {
    expect(await play("sleep 1000 & echo $! > left; echo 1")).toMatchObject({ reward: 1 })
    expect(await runs(await numberIn("left"))).toBe(false)

    const over = new AbortController()
    // A grandchild that does not heed SIGTERM.
    const stubborn = `sh -c 'trap "" TERM; echo $$ > stubborn; while :; do sleep 1; done' & echo $$ > leader; wait`
    const playing = sh(stubborn)("task", context(over.signal))
    const pids = [await numberIn("stubborn"), await numberIn("leader")]
    expect(await Promise.all(pids.map(runs))).toEqual([true, true])
    over.abort(new Error("enough"))
    await expect(playing).rejects.toThrow("enough")
    // The system ends a process some time after SIGKILL was sent to it.
    await expect.poll(() => Promise.all(pids.map(runs)), { timeout: 10_000 }).toEqual([false, false])

    await expect(sh("echo 1")("task", context(AbortSignal.abort(new Error("before"))))).rejects.toThrow("before")
  })

  it("has time to clean up, and does not delay others if a process leaves its group with the output open", async () => {
    const over = new AbortController()
    const playing = sh(`trap 'echo 7 > cleaned; exit 0' TERM; echo 1 > ready; while :; do sleep 0.01; done`, {
      grace: 60,
    })("task", context(over.signal))
    await numberIn("ready")
    over.abort(new Error("enough"))
    await expect(playing).rejects.toThrow("enough")
    expect(await numberIn("cleaned")).toBe(7)

    expect(
      await play("setsid sh -c 'echo $$ > away; exec sleep 1000' & while [ ! -s away ]; do :; done; echo 4"),
    ).toEqual({
      reward: 4,
      metrics: {},
    })
    process.kill(await numberIn("away"))
  })

  it("is rejected before anything is played where it cannot be", () => {
    const refusal = (command: unknown, more: object = {}) => {
      try {
        processAgent({ command, ...more } as never)
      } catch (error) {
        return (error as Error).message
      }
      return "taken"
    }
    expect(refusal(["no-such-program"])).toMatch(
      /^There is no executable program no-such-program: give a program on the PATH/,
    )
    expect(refusal(["./sh"])).toMatch(/There is no executable program \.\/sh/)
    expect(refusal([])).toMatch(/command must name a program/)
    expect(refusal("node agent.mjs")).toMatch(/command must be a list/)
    expect(refusal(undefined)).toMatch(/command is missing/)
    expect(refusal(["sh"], { graze: 1 })).toMatch(/did you mean grace\?/)
  })
})

describe("a program at the gateway", () => {
  const playAll = (script: string, tasks: readonly unknown[], more: object = {}) =>
    playProgram(script, { folder, tasks, options: { control: "descriptor" }, more })

  it("reports its state, rewards and outcome by POST", async () => {
    const [episode] = await playAll(
      `await post("/gigpo/step", { anchor: "start " + task })
      await ask("a")
      await post("/gigpo/reward", { reward: 0.25, metrics: { first: 1 } })
      await post("/gigpo/reward", 0.5)
      await ask("b")
      await post("/gigpo/reward", { reward: 1, success: true, metrics: { second: 2 } })
      for (const [path, body] of [["step", {}], ["reward", "much"], ["reward", { reward: 1e300 }], ["rewards", 1]])
        await post("/gigpo/" + path, body).then(() => process.exit(1), () => {})
      console.log("all done")`,
      [7],
    )
    expect(episode).toMatchObject({ outcome: "terminated", return: 1.75, metrics: { first: 1, second: 2, success: 1 } })
    expect(episode!.steps.map(({ reward, observation }) => [reward, observation.anchor])).toEqual([
      [0.75, "start 7"],
      [1, "start 7"],
    ])
  })

  it("is dropped, failed or truncated by its own report or by a limit", async () => {
    const script = `
      if (task === "early") await post("/gigpo/reward", 1)
      await ask(task)
      if (task === "null") await post("/gigpo/reward", null)
      if (task === "after null") { await post("/gigpo/reward", null); await post("/gigpo/reward", 1) }
      if (task === "line") console.log(0.5)
      if (task === "long") for (;;) await ask("more")
      if (task === "throws") throw new Error("no tool today")
    `
    const tasks = ["null", "after null", "line", "long", "throws", "early", "silent"]
    const episodes = await playAll(script, tasks)
    expect(episodes.map(({ outcome, return: total, steps }) => [outcome, total, steps.length])).toEqual([
      ["excluded", 0, 1],
      ["excluded", 1, 1],
      ["terminated", 0.5, 1],
      ["truncated", 0, 3],
      ["failed", 0, 1],
      ["failed", 0, 0],
      ["failed", 0, 1],
    ])
    const [, , , , throws, early, silent] = episodes.map(({ error }) => error?.message)
    expect(throws).toMatch(/agent\.mjs ended with code 1: .*Error: no tool today/)
    expect(early).toMatch(/400 .*before the first completion/)
    expect(silent).toMatch(/reported no reward/)
  })

  it("is ended when its episode takes too long, and its key with it", async () => {
    const script = `
      import { spawn } from "node:child_process"
      import { writeFileSync } from "node:fs"
      await ask("hello")
      writeFileSync("sleeper", String(spawn("sleep", ["1000"]).pid))
      setInterval(() => {}, 1000)`
    const [episode] = await playAll(script, ["hang"], { episodeTimeout: 1 })
    expect(episode).toMatchObject({ outcome: "failed", error: { code: "ROLLOUT_TIMEOUT" } })
    if (existsSync(join(folder, "sleeper"))) expect(await runs(await numberIn("sleeper"))).toBe(false)
  })
})
