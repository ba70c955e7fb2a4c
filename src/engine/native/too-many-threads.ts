import { native } from "../../native/native.ts"
import { warn } from "../../util/warn.ts"

const warned = new Set<number>()

/** Warns of more threads than cores, which slow each other down; once per process and number. */
export function warnOfThreads(threads: number): void {
  const cores = native().deviceReport().cpu.threads
  if (threads <= cores || warned.has(threads)) return
  warned.add(threads)
  warn(
    `threads is ${threads}, but this process may use ${cores} ${cores === 1 ? "core" : "cores"}: more threads than cores compute ` +
      `slower. Set threads to ${cores}, or remove the option.`,
  )
}
