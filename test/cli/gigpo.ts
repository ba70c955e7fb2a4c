import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** Where notes of the runs of tests go, and not to the user's own. */
const state = join(tmpdir(), "gigpo-test-state")
const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url))

/** Whether `npm run build:ts` has been run. */
export const built: boolean = existsSync(main)

/** Whether every case is run (GIGPO_TEST_ALL=1); without it the slowest tests take a fixed part of theirs. */
export const everyCase: boolean = process.env.GIGPO_TEST_ALL === "1"

/** The cases of the test at an index: all of them with GIGPO_TEST_ALL=1, else one, so that tests next to each other take others. */
export function casesAt<T>(cases: readonly T[], index: number): readonly T[] {
  return everyCase ? cases : [cases[index % cases.length]!]
}

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface GigpoOptions {
  readonly cwd: string
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  /** Told all that was printed so far whenever there is more; may send signals. */
  readonly onOutput?: (stdout: string, kill: (signal: NodeJS.Signals) => void) => void
  /** The same of standard error, and once when the process has started. */
  readonly onErrors?: (stderr: string, kill: (signal: NodeJS.Signals) => void) => void
  /** Told of the process as soon as it runs. */
  readonly onStart?: (child: ChildProcess) => void
  /** Standard input stays open. Default false. */
  readonly waiting?: boolean
}

/** Runs the command line as a user does, with pipes for a terminal. */
export async function gigpo(words: readonly string[], options: GigpoOptions): Promise<Outcome> {
  const { DEBUG: _, npm_command: __, ...inherited } = process.env
  const child = spawn(process.execPath, [main, ...words], {
    cwd: options.cwd,
    env: { ...inherited, XDG_STATE_HOME: state, GIGPO_HEARTBEAT: "0", ...options.env }, // on a busy machine anything may take seconds
    stdio: "pipe",
  })
  options.onStart?.(child)
  let [stdout, stderr] = ["", ""]
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text
    options.onOutput?.(stdout, (signal) => child.kill(signal))
  })
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
    options.onErrors?.(stderr, (signal) => child.kill(signal))
  })
  child.stdin.on("error", () => {})
  if (!options.waiting) child.stdin.end(options.input ?? "")
  const [code] = (await once(child, "close")) as [number | null]
  return { code, stdout, stderr }
}

export interface Served {
  /** The two lines that it printed. */
  readonly address: string
  readonly key: string
  readonly kill: (signal: NodeJS.Signals) => void
  readonly ended: Promise<Outcome>
}

/** Starts what serves until it is stopped; told once it has printed its address and key. */
export async function untilServed(words: readonly string[], options: GigpoOptions): Promise<Served> {
  return await new Promise((resolve, reject) => {
    const onOutput: GigpoOptions["onOutput"] = (stdout, kill) => {
      const [address, key, rest] = stdout.split("\n")
      if (rest !== undefined) resolve({ address: address!, key: key!, kill, ended })
    }
    const ended = gigpo([...words, "--port", "0"], { ...options, onOutput })
    void ended.then((outcome) => reject(new Error(`it ended: ${JSON.stringify(outcome)}`)))
  })
}

/** What a run came to: metrics.jsonl without times, and the trained weights. */
export async function readRun(run: string): Promise<{ metrics: unknown[]; model: Buffer }> {
  const lines = (await readFile(join(run, "metrics.jsonl"), "utf8")).trim().split("\n")
  const metrics = lines.map((line) => {
    const { time: _, resumed: __, metrics, ...report } = JSON.parse(line)
    return [report, Object.entries(metrics).filter(([metric]) => !metric.startsWith("time/"))]
  })
  return { metrics, model: await readFile(join(run, "model", "model.safetensors")) }
}

/** Settings of a model and a run so small that they take a second. */
export const tiny: readonly string[] = [
  "threads=1", // tests run side by side
  "initialModel.hiddenSize=32",
  "initialModel.layers=1",
  "initialModel.heads=2",
  "initialModel.vocabularySize=280",
  "sft.tasks=10",
  "sft.epochs=2",
  "training.iterations=6",
  "training.groups=2",
  "training.groupSize=3",
  "training.rollout.maxCompletionTokens=8",
  "training.evaluation.every=3",
  "training.evaluation.tasks=4",
  "training.checkpointEvery=2",
].flatMap((set) => ["--set", set])
