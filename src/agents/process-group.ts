import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import type { Socket } from "node:net"
import { setImmediate, setTimeout } from "node:timers/promises"
import { unlessAborted } from "../util/linked-abort.ts"
import { Tail } from "./tail.ts"

// Programs run to their end in process groups, of which no process is left behind.

export interface GroupSetup {
  readonly directory: string
  readonly environment: Readonly<NodeJS.ProcessEnv>
  /** Standard input. */
  readonly input: string
  /** Secret, readable once from the descriptor `secretDescriptor`, a socket that /proc does not open for others. */
  readonly secret?: string | undefined
  /** Seconds between SIGTERM and SIGKILL. */
  readonly grace: number
  /** Stops the program when aborted. */
  readonly signal: AbortSignal
}

/** First descriptor after the standard ones. */
export const secretDescriptor = 3

/** End of a program, with the last part of its output. */
export interface GroupEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** Output until the program itself exited, including that of its children. */
  readonly stdout: Tail
  readonly stderr: Tail
}

/** Bytes kept of the end of each output. */
const [keptOutput, keptErrors] = [65_536, 8192]
/** Milliseconds between two checks whether a group has ended. */
const pause = 10
/** Rounds of the event loop after an exit in which earlier output is still read. */
const lateReads = 100
/** Milliseconds to wait for an output that a process outside of the group holds open. */
const draining = 1000

/** Running programs, and the ids of their groups. */
const active = new Set<Promise<GroupEnd>>()
const groups = new Set<number>()

/** Resolves when no program is running. Programs that were not stopped are awaited. */
export async function allGroupsEnded(): Promise<void> {
  await Promise.allSettled(active)
}

/**
 * Runs a program. Processes of its group that remain after its end, or when the signal is aborted, get SIGTERM, then
 * SIGKILL; all of them are killed when this process ends. Programs that leave their group (`setsid`) are not stopped.
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
  channel?.on("error", () => {}) // if the program does not read it
  channel?.end(secret ?? "")
  const listen = (chunk: Buffer) => stdout.push(chunk)
  child.stdout.on("data", listen)
  child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk))
  child.stdin.on("error", () => {}) // if the program does not read it
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
    // Remaining processes may hold the output open; what they write must not be the last line.
    await readOut(stdout)
    child.stdout.off("data", listen).resume()
    return { ...ending, stdout, stderr }
  } finally {
    await end(pid, grace)
    release(pid)
    await Promise.race([closed, setTimeout(draining, undefined, { ref: false })])
    await setImmediate() // read what has arrived meanwhile
    channel?.destroy()
    child.stdout.destroy()
    child.stderr.destroy()
  }
}

/** Reads until no more output arrives: what was written before the exit is already with the system. */
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

/** Sends a signal. Returns whether a process received it. */
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
