import { readFileSync } from "node:fs"

/** Descriptors that connections leave to everything else: files that are saved, models, threads. */
const reserved = 256

/**
 * Most connections that a process can hold while it can still open files: its limit of open files (`ulimit -n`) without a reserve of 256,
 * or three quarters of a limit that is smaller than 1,024.
 */
export function connectionsFor(openFiles = openFilesLimit()): number {
  return Math.floor(Math.max(openFiles - reserved, openFiles * 0.75))
}

/** Open files that this process may have at once; infinite where the system sets no limit. */
function openFilesLimit(): number {
  const told = limitOfLinux() ?? limitOfReport()
  return Number.isSafeInteger(told) ? Number(told) : Number.POSITIVE_INFINITY
}

function limitOfLinux(): number | undefined {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1])
  } catch {
    return undefined // another system, or /proc is not mounted
  }
}

function limitOfReport(): unknown {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: unknown } } }
  return Number(userLimits?.open_files?.soft)
}
