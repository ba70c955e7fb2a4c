import { type ChildProcess, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { cp, mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

const faultyDisk = fileURLToPath(new URL("../process/programs/faulty-disk.mjs", import.meta.url))

/** What one step of the path is run with. */
export interface Running {
  readonly input?: string
  /** Kills the process at this write. */
  readonly killAt?: number
  readonly onStart?: (child: ChildProcess) => void
}

/**
 * A user's folder with a project in which the package is installed, a cache of the Hub and a state folder. All that a command writes is in the
 * folder `work`, which can be kept and put back, always at the same path.
 */
export class Place implements AsyncDisposable {
  readonly root: string
  readonly #command: string
  readonly #hub: string
  readonly #settings: Readonly<Record<string, string>>

  private constructor(root: string, command: string, hub: string, settings: Readonly<Record<string, string>>) {
    this.root = root
    this.#command = command
    this.#hub = hub
    this.#settings = settings
  }

  static async create(
    install: (project: string) => Promise<string>,
    hub: string,
    settings: Readonly<Record<string, string>> = {},
  ): Promise<Place> {
    const root = await realpath(await mkdtemp(join(tmpdir(), "gigpo-path-")))
    return new Place(root, await install(join(root, "project")), hub, settings)
  }

  get work(): string {
    return join(this.root, "work")
  }

  /** Runs gigpo, and returns how it ended and how often it wrote to the disk. */
  async gigpo(
    words: readonly string[],
    { input = "", killAt, onStart }: Running = {},
  ): Promise<Ended & { writes: number }> {
    const counted = join(this.root, "writes")
    await rm(counted, { force: true })
    const { PATH = "", HOME = "", TMPDIR = "", SystemRoot = "" } = process.env
    const env = {
      ...{ PATH, HOME, SystemRoot, ...(TMPDIR && { TMPDIR }) },
      ...{
        HF_HOME: join(this.work, "cache"),
        HF_ENDPOINT: this.#hub,
        GIGPO_STATE: join(this.work, "state"),
        GIGPO_HEARTBEAT: "0",
      },
      ...{ GIGPO_TEST_WRITES: counted, GIGPO_TEST_DISK: killAt === undefined ? "" : `kill:${killAt}` },
      ...this.#settings,
    }
    const child = spawn(process.execPath, ["--import", faultyDisk, this.#command, ...words], {
      cwd: this.work,
      env,
      stdio: "pipe",
    })
    onStart?.(child)
    let [stdout, stderr] = ["", ""]
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text
    })
    child.stdin.on("error", () => {})
    child.stdin.end(input)
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null]
    const writes = Number(await readFile(counted, "utf8").catch(() => "0"))
    return { code, signal, stdout, stderr, writes }
  }

  async keep(name: string): Promise<void> {
    await copy(this.work, join(this.root, `kept-${name}`))
  }

  async putBack(name: string): Promise<void> {
    await copy(join(this.root, `kept-${name}`), this.work)
  }

  /**
   * What the commands so far have made: digests of files, and of the log all but times. Left out are what differs from run to run (times and
   * locks), and what a command does not promise to make again.
   */
  async result(): Promise<Record<string, string>> {
    const found: Record<string, string> = {}
    for (const path of await filesIn(this.work)) {
      if (
        /^(state|cache\/hub\/\.locks)\/|run\.lock$|^demo\/run\/(config\.json|gigpo\.json|episodes\/|checkpoints\/)/.test(
          path,
        )
      )
        continue
      const bytes = await readFile(join(this.work, path))
      found[path] = createHash("sha256")
        .update(path.endsWith("metrics.jsonl") ? timeless(bytes) : bytes)
        .digest("hex")
    }
    return found
  }

  /** Files that are half-written, wherever they are. */
  async halves(): Promise<string[]> {
    return (await filesIn(this.work)).filter((path) => /\.tmp-|\.gigpo-new-|\.gigpo-ready|incomplete/.test(path))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true, force: true })
  }
}

async function copy(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true })
  await cp(from, to, { recursive: true, verbatimSymlinks: true })
}

/** Paths of the files and links below a folder. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => !entry.isDirectory())
  return files.map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll("\\", "/")).sort()
}

function timeless(log: Buffer): string {
  const lines = log.toString("utf8").trim().split("\n")
  const reports = lines.map((line) => {
    const { time: _, resumed: __, metrics, ...report } = JSON.parse(line)
    return [report, Object.entries(metrics ?? {}).filter(([metric]) => !metric.startsWith("time/"))]
  })
  return JSON.stringify(reports)
}
