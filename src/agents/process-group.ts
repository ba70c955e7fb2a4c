import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import type { Socket } from "node:net"
import { setImmediate, setTimeout } from "node:timers/promises"
import { unlessAborted } from "../util/linked-abort.ts"
import { Tail } from "./tail.ts"

// Programs that are run to their end, each with whatever it starts: a process group, of which nothing is left behind.

export interface GroupSetup {
  readonly directory: string
  readonly environment: Readonly<NodeJS.ProcessEnv>
  /** Its standard input. */
  readonly input: string
  /** What can be read once from its descriptor `secretDescriptor`, which is a socket: /proc does not open it for others. */
  readonly secret?: string | undefined
  /** Seconds from SIGTERM to SIGKILL. */
  readonly grace: number
  /** Ends it when aborted. */
  readonly signal: AbortSignal
}

/** The first descriptor behind those that every program has. */
export const secretDescriptor = 3

/** How a program ended, and the last of what it wrote. */
export interface GroupEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Written until the program itself had exited, by it or by what it started. */
  readonly stdout: Tail
  readonly stderr: Tail
}

/** Bytes of their ends that are kept. */
const [keptOutput, keptErrors] = [65_536, 8192]
/** Milliseconds between two looks at whether a group has ended. */
const pause = 10
/** Rounds of the event loop after an exit in which output that had been written before is still read. */
const lateReads = 100
/** Milliseconds that are waited for an output which somebody outside of the group holds open. */
const draining = 1000

/** What runs, and the groups' numbers. */
const active = new Set<Promise<GroupEnd>>()
const groups = new Set<number>()

/** Once none of the programs that were started runs any more. Those are waited for that nobody has ended. */
export async function allGroupsEnded(): Promise<void> {
  await Promise.allSettled(active)
}

/**
 * Runs a program. Whatever of its group is left when it has ended, or when the signal is aborted, gets SIGTERM, then SIGKILL, and all
 * of it when this process ends. Programs that leave their group (`setsid`) get away.
 *
 * @throws the error of `spawn`, or the signal's reason, once the group has ended
 */
export function runGroup(program: string, args: readonly string[], setup: GroupSetup): Promise<GroupEnd> {
  const running = run(program, args, setup).finally(() => active.delete(running))
  active.add(running)
  return running
}

async function run(
  program: string,
  args: readonly string[],
  { directory, environment, input, secret, grace, signal }: GroupSetup,
): Promise<GroupEnd> {
  signal.throwIfAborted()
  const stdio: ("pipe" | "ignore")[] = ["pipe", "pipe", "pipe", secret === undefined ? "ignore" : "pipe"]
  const setup = { cwd: directory, env: environment, detached: true, stdio }
  const child = spawn(program, args, setup) as ChildProcessWithoutNullStreams
  const [stdout, stderr] = [new Tail(keptOutput), new Tail(keptErrors)]
  const channel = child.stdio[secretDescriptor] as Socket | null
  channel?.on("error", () => {}) // of one that does not read it
  channel?.end(secret ?? "")
  const listen = (chunk: Buffer) => stdout.push(chunk)
  child.stdout.on("data", listen)
  child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk))
  child.stdin.on("error", () => {}) // of one that does not read it
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()))
  const exited = new Promise<Pick<GroupEnd, "code" | "signal">>((resolve, reject) => {
    child.once("error", reject)
    child.once("exit", (code, signal) => resolve({ code, signal }))
  })
  const { pid } = child
  if (pid === undefined) return { ...(await exited), stdout, stderr } // it rejects
  hold(pid)
  try {
    child.stdin.end(input)
    const ending = await unlessAborted(signal, () => exited)
    // What it leaves behind, or what gets SIGTERM now, may hold its output and must not have the last word.
    await readOut(stdout)
    child.stdout.off("data", listen).resume()
    return { ...ending, stdout, stderr }
  } finally {
    await end(pid, grace)
    release(pid)
    await Promise.race([closed, setTimeout(draining, undefined, { ref: false })])
    await setImmediate() // what has come meanwhile is read
    channel?.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

/** Until nothing more comes: what was written before the exit is with the system already. */
async function readOut(output: Tail): Promise<void> {
  for (let [round, before] = [0, -1]; round < lateReads && before !== output.bytes; round++) {
    before = output.bytes
    await setImmediate()
    await setImmediate()
  }
}

async function end(pid: number, grace: number): Promise<void> {
  if (!send(pid, "SIGTERM")) return
  for (let waited = 0; waited < grace * 1000; waited += pause) {
    await setTimeout(pause)
    if (!send(pid, 0)) return
  }
  send(pid, "SIGKILL")
}

/** Whether there was anybody to get it. */
function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

function hold(pid: number): void {
  if (groups.size === 0) process.on("exit", killAll)
  groups.add(pid)
}

function release(pid: number): void {
  groups.delete(pid)
  if (groups.size === 0) process.off("exit", killAll)
}

function killAll(): void {
  for (const pid of groups) send(pid, "SIGKILL")
}
