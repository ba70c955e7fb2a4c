import { readFileSync } from "node:fs"

/** File descriptors reserved for other uses: saved files, models, threads. */
const reserved = 256

/**
 * Maximum connections with file descriptors left for files: the limit of open files (`ulimit -n`) minus 256, or three
 * quarters of a limit below 1,024.
 */
export function connectionsFor(openFiles = openFilesLimit()): number {
  return Math.floor(Math.max(openFiles - reserved, openFiles * 0.75))
}

/** Limit of open files of this process; infinite without a limit. */
function openFilesLimit(): number {
  const limit = limitOfLinux() ?? limitOfReport()
  return Number.isSafeInteger(limit) ? Number(limit) : Number.POSITIVE_INFINITY
}

function limitOfLinux(): number | undefined {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1])
  } catch {
    return undefined // not Linux, or /proc is not mounted
  }
}

function limitOfReport(): unknown {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft: unknown } } }
  return Number(userLimits?.open_files?.soft)
}
