import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"

export interface Ended {
  /** Exit code; null where a signal ended it, an abort among them. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Why these tests cannot run, or "". They run programs on modules/, as `npm test` builds it first. */
export const notBuilt: string = existsSync(new URL("../../modules/engine/native/native-policy.js", import.meta.url))
  ? ""
  : " (skipped: run `npm run build` first, for modules/)"

/** Runs one of ./programs in a Node of its own, in an address space of so many KiB. One that hangs is killed, which shows as a signal. */
export function runProgram(
  name: string,
  args: readonly string[] = [],
  nodeOptions: readonly string[] = [],
  limits: { readonly addressSpace?: number } = {},
): Promise<Ended> {
  const path = fileURLToPath(new URL(`programs/${name}.mjs`, import.meta.url))
  // glibc would otherwise keep some freed megabytes, now more and now fewer, and hide a leak or pretend one.
  const env = { ...process.env, MALLOC_MMAP_THRESHOLD_: "131072" }
  return new Promise((resolve) => {
    const options = { env, timeout: 240_000, killSignal: "SIGKILL" } as const
    const command = [process.execPath, ...nodeOptions, path, ...args]
    const limit =
      limits.addressSpace === undefined ? [] : ["sh", "-c", `ulimit -v ${limits.addressSpace}; exec "$@"`, "sh"]
    const [file, ...rest] = [...limit, ...command]
    const child = execFile(file!, rest, options)
    let [stdout, stderr] = ["", ""]
    child.stdout?.on("data", (text) => {
      stdout += text
    })
    child.stderr?.on("data", (text) => {
      stderr += text
    })
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}
