import { spawn } from "node:child_process"
import { setImmediate, setTimeout } from "node:timers/promises"
import { unlessAborted } from "../linked-abort.ts"
import { Tail } from "./tail.ts"

// Programs that are run to their end, each with whatever it starts: a process group, of which nothing is left behind.

export interface GroupSetup {
  readonly directory: string
  readonly environment: Readonly<NodeJS.ProcessEnv>
  /** Its standard input. */
  readonly input: string
  /** Seconds from SIGTERM to SIGKILL. */
  readonly grace: number
  /** Ends it when aborted. */
  readonly signal: AbortSignal
}

/** How a program ended, and the last of what it wrote. */
export interface GroupEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: Tail
  readonly stderr: Tail
}

/** Bytes of their ends that are kept. */
const [keptOutput, keptErrors] = [65_536, 8192]
/** Milliseconds between two looks at whether a group has ended. */
const pause = 10
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
  { directory, environment, input, grace, signal }: GroupSetup,
): Promise<GroupEnd> {
  signal.throwIfAborted()
  const child = spawn(program, args, { cwd: directory, env: environment, detached: true, stdio: "pipe" })
  const [stdout, stderr] = [new Tail(keptOutput), new Tail(keptErrors)]
  child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk))
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
    return { ...(await unlessAborted(signal, () => exited)), stdout, stderr }
  } finally {
    await end(pid, grace)
    release(pid)
    await Promise.race([closed, setTimeout(draining, undefined, { ref: false })])
    await setImmediate() // what has come meanwhile is read
    child.stdout.destroy()
    child.stderr.destroy()
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
