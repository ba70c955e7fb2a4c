import { spawn } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** Readers of files and messages from elsewhere, by the names of their files in the folder of targets. */
export const fuzzTargets: readonly string[] = [
  ..."yaml schemas templates tokenizers models configs gguf archives data worlds panels runs wire answers images http".split(
    " ",
  ),
]

export interface Finding {
  readonly index: number
  /** internal, uncaught, unhandled, slow, memory, "seed refused", crash or hang. */
  readonly kind: string
  /** Path of the input. */
  readonly file?: string
  readonly [more: string]: unknown
}

/** Most that one input took of something. */
export interface Most {
  readonly index: number
  /** Seconds, or bytes. */
  readonly amount: number
  /** Name of the seed that was changed. */
  readonly input: string
}

export interface Fuzzed {
  readonly tried: number
  readonly findings: readonly Finding[]
  /** By seconds of processor time, and by growth of the peak of resident memory. */
  readonly slowest: Most | undefined
  readonly largest: Most | undefined
}

export interface FuzzLimits {
  /** Seconds of processor time of one input, in all threads. */
  readonly seconds: number
  /** Bytes by which one input may raise the peak of resident memory: so many, and so many for each byte of the input. */
  readonly bytes: number
  readonly multiple: number
}

export interface FuzzOptions {
  /** Seconds in which inputs are tried. */
  readonly seconds: number
  readonly seed: string
  /** Numbers of the first input, and of the one after the last. */
  readonly from: number
  readonly to: number
  readonly limits: FuzzLimits
  /** Folder for the inputs of findings. */
  readonly keep: string
}

/** Limits of all targets. */
export const fuzzLimits: FuzzLimits = { seconds: 1, bytes: 192 * 2 ** 20, multiple: 64 }

/** An input hangs after so many times the seconds that it may take, or after so many seconds of waiting. */
const [hangs, waits] = [10, 120]
/**
 * Looks at a process in a second. Waiting is counted in looks, since a machine that sleeps does not look, and only in those that find the process
 * waiting: on a busy machine it may be ready to run for minutes.
 */
const looks = 5
/** No other process is started where one could not even read the seeds. */
const neverReady = Number.MAX_VALUE
/** Findings of a target after which the rest are more of the same. */
const most = 20
const workerFile = fileURLToPath(new URL("worker.mjs", import.meta.url))

/**
 * Gives mutated inputs to a target, in processes of their own: an input that ends or holds a process is found by the parent process, and
 * another process continues with the next input.
 */
export async function fuzz(name: string, { seconds, seed, from, to, limits, keep }: FuzzOptions): Promise<Fuzzed> {
  const folder = mkdtempSync(join(tmpdir(), `gigpo-fuzz-${name}-`))
  const job = { ...{ name, seed, folder, limits, last: to }, keep: join(keep, `${name}-${seed}`) }
  mkdirSync(keep, { recursive: true })
  const reported: Reported = { findings: [], slowest: undefined, largest: undefined }
  let [first, left] = [from, seconds]
  try {
    while (first < to && left > 0 && reported.findings.length < most) {
      const ended = await runWorker({ ...job, first, seconds: left }, reported)
      first = ended.next
      left -= ended.seconds
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return { tried: first - from, ...reported }
}

/** Findings and extremes that the processes of a target have reported. */
interface Reported {
  readonly findings: Finding[]
  slowest: Most | undefined
  largest: Most | undefined
}

interface Job {
  readonly folder: string
  /** Path of a kept input without its number. */
  readonly keep: string
  readonly first: number
  readonly limits: FuzzLimits
  readonly [more: string]: unknown
}

/** The number of the next input, and the seconds that the tried ones took. */
function runWorker(job: Job, reported: Reported): Promise<{ readonly next: number; readonly seconds: number }> {
  const child = spawn(process.execPath, ["--max-old-space-size=2048", workerFile, JSON.stringify(job)], {
    stdio: ["ignore", "pipe", "pipe"],
  })
  const at = () => Number(readOr(join(job.folder, "progress"), "")) || job.first
  let [output, errors, hung, done, ready] = ["", "", false, false, Number.POSITIVE_INFINITY]
  child.stderr.on("data", (text) => {
    errors = `${errors}${text}`.slice(-2000)
  })
  child.stdout.on("data", (text) => {
    const lines = `${output}${text}`.split("\n")
    output = lines.pop()!
    for (const line of lines.filter((one) => one.startsWith('{"index"'))) {
      const message: Finding = JSON.parse(line)
      if (message.kind === "ready") ready = performance.now()
      else if (message.kind === "done") done = true
      else if (message.kind === "slowest" || message.kind === "largest") note(reported, message.kind, line)
      else reported.findings.push(message)
    }
    if (reported.findings.length < most) return
    done = true
    child.kill("SIGKILL")
  })
  let seen = { index: -1, cpu: 0, looks: 0 }
  const watch = setInterval(() => {
    const [index, { cpu, runnable }] = [at(), processState(child.pid!)]
    if (index !== seen.index) seen = { index, cpu, looks: 0 }
    if (!runnable) seen.looks++
    if (cpu - seen.cpu < hangs * job.limits.seconds && seen.looks <= waits * looks) return
    hung = true
    child.kill("SIGKILL")
  }, 1000 / looks)
  return new Promise((resolve, reject) => {
    child.once("error", reject)
    child.once("close", (code, signal) => {
      clearInterval(watch)
      const index = at()
      const ended = hung ? { kind: "hang" } : { kind: "crash", code, signal, errors }
      if (!done) reported.findings.push({ index, ...ended, ...keptInput(job, index) })
      const seconds = (performance.now() - ready) / 1000
      resolve({ next: index + (done ? 0 : 1), seconds: Number.isFinite(seconds) ? seconds : neverReady })
    })
  })
}

function note(reported: Reported, kind: "slowest" | "largest", line: string): void {
  const found: Most = JSON.parse(line)
  if (found.amount > (reported[kind]?.amount ?? 0)) reported[kind] = found
}

/** Keeps the last input of a process that ended before it could. */
function keptInput({ folder, keep }: Job, index: number): { readonly file?: string } {
  const [from, file] = [join(folder, "input"), `${keep}-${index}`]
  if (!existsSync(from)) return {}
  copyFileSync(from, file)
  return { file }
}

/**
 * Seconds of processor time of a process and its threads, and whether its main thread runs or would run, as Linux has them. Elsewhere only the time
 * that passes ends a hang.
 */
function processState(pid: number): { readonly cpu: number; readonly runnable: boolean } {
  const fields = readOr(`/proc/${pid}/stat`, "")
    .replace(/^.*\) /s, "")
    .split(" ")
  return { cpu: (Number(fields[11]) + Number(fields[12])) / 100 || 0, runnable: fields[0] === "R" }
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, "latin1")
  } catch {
    return otherwise
  }
}
