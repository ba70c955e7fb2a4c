import { readFileSync, readlinkSync } from "node:fs"
import { isSystemError } from "./io-error.ts"

/** Whether a process with this id runs on this machine. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (cause) {
    return !(isSystemError(cause) && cause.code === "ESRCH")
  }
}

/** Identifies the boot of this machine, if the system reports it: process ids are reused. */
export function bootId(): string | undefined {
  return readSystem("/proc/sys/kernel/random/boot_id")?.trim()
}

/**
 * Field 22 of proc_pid_stat(5): clock ticks from boot to the start of the process. The process name may contain spaces
 * and parentheses.
 */
export function startOf(pid: number): string | undefined {
  return readSystem(`/proc/${pid}/stat`)?.split(")").at(-1)?.trim().split(" ")[19]
}

function readSystem(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** Identifies the container whose process ids this process sees, if the system reports it. */
export function processNamespace(): string | undefined {
  try {
    return readlinkSync("/proc/self/ns/pid")
  } catch {
    return undefined
  }
}
