import { readdirSync } from "node:fs"
import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises"
import { constants, tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { built, gigpo, tiny } from "./gigpo.ts"

const signals = { SIGINT: "Ctrl-C", SIGTERM: "SIGTERM", SIGHUP: "SIGHUP" } as const
type Signal = keyof typeof signals

/** Says when a command listens to signals, which it does before anything else. */
const preload = `process.on("newListener", (name) => name === "SIGHUP" && process.stderr.write("[ready]\\n"))`

/** Says what it is asked for. Where SLOW is set it is never loaded. */
const environment = `
process.stderr.write("[open]\\n")
if (process.env.SLOW) await new Promise((resolve) => setTimeout(resolve, 1e9))
const say = (what) => process.stderr.write("[" + what + "]\\n")
const wait = () => new Promise((resolve) => setTimeout(resolve, 10))
export default {
  name: "staged",
  *tasks(split) {
    say("tasks " + split)
    for (let index = 0; ; index++) yield index
  },
  async start() {
    say("start")
    const first = { text: "here", anchor: "here" }
    let steps = 0
    const step = async () => {
      await wait()
      return { observation: first, reward: steps % 2, terminated: ++steps === 3, truncated: false, metrics: { success: 1 } }
    }
    return { first, step, async [Symbol.asyncDispose]() {} }
  },
  prompt: (task, history, now) => [{ role: "user", content: now.text }],
  parse: (reply) => ({ action: reply, valid: true }),
  expert: () => ({ complete: () => "on" }),
}`

const loss = `export default {
  name: "staged",
  evaluate(input) {
    process.stderr.write("[update]\\n")
    return { loss: 0, gradient: Float32Array.from(input.logProbs, () => 1e-3) }
  },
}`

interface Phase {
  /** What has been printed, or which file or folder is there, when the signal comes. */
  readonly mark: RegExp
  readonly file?: RegExp
  readonly env?: Readonly<Record<string, string>>
  readonly waiting?: boolean
  /** What is said of the state. */
  readonly says?: RegExp
  /** Exit code of what Ctrl-C is the usual way to end. */
  readonly code?: number
  /** Whether the signal may come when all is done but for the end of the process. */
  readonly mayEnd?: boolean
}

const ready: Phase = { mark: /\[ready\]/ }
const opening: Phase = { mark: /\[open\]/, env: { SLOW: "1" } }
const nth = (what: string, count: number): Phase => ({ mark: new RegExp(`(\\[${what}\\][^]*){${count}}`) })
const written = (file: RegExp): Phase => ({ mark: /^$/, file, mayEnd: true })

const saved = /The state after iteration \d is saved\. To resume: /

const everywhere = ["--set", "environment={ use: ../../staged.mjs }"]
const large = ["--set", "initialModel.hiddenSize=256", "--set", "initialModel.vocabularySize=2000"]

/** Words of each command, its phases, and the folder that it writes into. */
const commands: readonly (readonly [name: string, words: readonly string[], phases: Record<string, Phase>])[] = [
  [
    "config",
    ["config", "small/config.yaml", "--modules", ...everywhere],
    { beginning: ready, "loading a module": opening },
  ],
  ["doctor", ["doctor"], { "its self-test": ready }],
  [
    "init",
    ["init", "sokoban", "made", ...large],
    {
      beginning: ready,
      "playing the expert": written(/^made\.tmp-\w+$/),
      "making the model": written(/^made\.tmp-\w+\/model\.tmp-\w+\/tokenizer\.json$/),
      "saving it": written(/model\.safetensors$/),
    },
  ],
  [
    "sft",
    ["sft", "small/config.yaml", "--out", "made", ...everywhere],
    {
      beginning: ready,
      "loading a module": opening,
      "playing the expert": nth("start", 3),
      "an epoch": { mark: /epoch 1\// },
      "saving it": written(/^made\.tmp-\w+/),
    },
  ],
  [
    "evaluate",
    ["evaluate", "small/config.yaml", ...everywhere],
    { beginning: ready, "loading a module": opening, playing: nth("start", 3) },
  ],
  [
    "estimate",
    ["estimate", "small/config.yaml", ...everywhere],
    { beginning: ready, "loading a module": opening, "playing episodes": nth("start", 3) },
  ],
  [
    "estimate of given lengths",
    ["estimate", "small/config.yaml", "--prompt-tokens", "9", "--completion-tokens", "9", "--steps", "9"],
    { "measuring the machine": ready },
  ],
  [
    "play",
    ["play", "small/config.yaml", ...everywhere],
    { beginning: ready, "loading a module": opening, "the model's turn": nth("start", 1) },
  ],
  ["play --expert", ["play", "small/config.yaml", "--expert", ...everywhere], { playing: nth("start", 1) }],
  [
    "play --by-hand",
    ["play", "small/config.yaml", "--by-hand", ...everywhere],
    { "waiting for input": { mark: /action\?/, waiting: true } },
  ],
  ["retriever", ["retriever", "corpus.jsonl", "--port", "0"], { indexing: ready, serving: { mark: /http:/, code: 0 } }],
  [
    "train",
    [
      "train",
      "small/config.yaml",
      "--set",
      "run=made",
      ...everywhere,
      "--set",
      "training.loss={ use: ../../staged-loss.mjs }",
    ],
    {
      beginning: ready,
      "loading a module": opening,
      "the first evaluation": nth("tasks test", 1),
      "a rollout": nth("tasks train", 2),
      "an update": { ...nth("update", 3), says: saved },
      "saving a checkpoint": { ...written(/^made\/checkpoints\/iteration-2\.tmp-\w+$/), says: saved },
      "an evaluation in the middle": { ...nth("tasks test", 2), says: saved },
      "the last evaluation": { ...nth("tasks test", 3), says: saved },
      "saving the model": written(/^made\/model\.tmp-\w+$/),
    },
  ],
]

describe.skipIf(!built)("a command that is stopped (needs dist: npm run build:ts)", () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "gigpo-phases-"))
    expect(await gigpo(["init", "sokoban", "small", ...tiny], { cwd: folder })).toMatchObject({ code: 0 })
    await writeFile(join(folder, "preload.mjs"), preload)
    await writeFile(join(folder, "staged.mjs"), environment)
    await writeFile(join(folder, "staged-loss.mjs"), loss)
    const passages = Array.from(
      { length: 50_000 },
      (_, id) => `{"id": "${id}", "contents": "passage ${id} of ${id % 977}"}`,
    )
    await writeFile(join(folder, "corpus.jsonl"), passages.join("\n"))
  })
  afterAll(async () => await rm(folder, { recursive: true, force: true }))

  /** Runs in a folder of its own, and sends the signal where the phase is reached. */
  async function stop(words: readonly string[], signal: Signal, { mark, file, env, waiting = false }: Phase) {
    const cwd = await mkdtemp(join(folder, "run-"))
    for (const name of ["small", "corpus.jsonl"]) await cp(join(folder, name), join(cwd, name), { recursive: true })
    let send: (() => void) | undefined
    let watch: NodeJS.Timeout | undefined
    let stoppedAt: number | undefined
    const look = (printed: string, kill: (signal: NodeJS.Signals) => void) => {
      send ??= () => {
        if (stoppedAt !== undefined) return
        stoppedAt = performance.now()
        kill(signal)
      }
      if (!file) return mark.test(printed) ? send() : undefined
      watch ??= setInterval(() => listed(cwd).some((path) => file.test(path)) && send?.(), 2)
    }
    const NODE_OPTIONS = `--import ${pathToFileURL(join(folder, "preload.mjs"))}`
    const options = { cwd, waiting, env: { NODE_OPTIONS, ...env }, onOutput: look, onErrors: look }
    const outcome = await gigpo(words, options)
    clearInterval(watch)
    const leftover = (await readdir(cwd, { recursive: true })).filter((name) => /\.(tmp|old)-/.test(name))
    return { ...outcome, leftover, reached: stoppedAt !== undefined, took: performance.now() - (stoppedAt ?? 0), cwd }
  }

  for (const [name, words, phases] of commands) {
    it.each(Object.entries(phases))(`${name}: %s`, async (where, phase) => {
      const names = Object.keys(signals) as Signal[]
      for (const [index, stopped] of (await Promise.all(names.map((signal) => stop(words, signal, phase)))).entries()) {
        const signal = names[index]!
        const { code, stdout, stderr, reached, leftover, took } = stopped
        if (process.env.GIGPO_TIMES) console.log(`${name}: ${where}, ${signal}: ${Math.round(took)} ms, code ${code}`)
        if (phase.mayEnd && code === 0) continue
        expect({ reached, leftover }, stderr).toEqual({ reached: true, leftover: [] })
        expect(code, stderr).toBe(phase.code ?? 128 + constants.signals[signal])
        if (phase.code === undefined) expect(stderr).toMatch(`gigpo: Stopped by ${signals[signal]}. [ABORTED]\n`)
        if (phase.says) expect(stdout).toMatch(phase.says)
        expect(took).toBeLessThan(20_000) // on an idle machine two seconds
      }
    })
  }
})

function listed(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" })
  } catch {
    return [] // something in it has just been renamed
  }
}
