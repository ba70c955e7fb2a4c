// Compiling the C++ and CUDA sources and running their test programs, for test-sanitized.mjs, test-emulated.mjs, test-arm.mjs and
// cross-compile.mjs.
import { spawnSync } from "node:child_process"
import { availableParallelism } from "node:os"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))
const parallel = String(availableParallelism())

/** Runs a command to its end, in the root of the repository. Throws if it fails. */
export function run(command, args, env = {}) {
  const { status, signal, error } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${signal ?? status}.`)
}

/**
 * Configures `build` with `settings` and compiles `targets`. Ninja is used if it is installed: Make compiles one target after the other, and a
 * program has a single source.
 */
export function compile(build, settings, targets) {
  const ninja = spawnSync("ninja", ["--version"]).status === 0 ? ["-G", "Ninja"] : []
  run("cmake", ["-S", root, "-B", build, ...ninja, ...settings])
  run("cmake", ["--build", build, "--parallel", parallel, "--target", ...targets])
}

/** Runs the programs whose name matches `pattern`, as many at once as there are processors: most use only one. */
export function runPrograms(build, pattern, env) {
  run(
    "ctest",
    ["--test-dir", build, "--output-on-failure", "--parallel", parallel, "--no-tests=error", "-R", pattern],
    {
      UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
      TSAN_OPTIONS: "halt_on_error=1",
      ...env,
    },
  )
}
