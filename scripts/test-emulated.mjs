// Tests the CUDA device without a GPU: the kernels are compiled for the CPU with the emulator in test/cuda/emulator.
//
//   node scripts/test-emulated.mjs                    # the test programs, then the package's tests of the device
//   node scripts/test-emulated.mjs --sanitize thread  # only the programs, with reports of races between GPU threads
//   node scripts/test-emulated.mjs --sanitize address,undefined matmul_test engine_test
//   node scripts/test-emulated.mjs --build-only       # compiles, and runs nothing
//
// On a machine with a GPU, build the same programs by `cmake -S . -B build-cuda && cmake --build build-cuda`, and run them by
// `ctest --test-dir build-cuda`.
import { spawnSync } from "node:child_process"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const { values, positionals } = parseArgs({
  options: { sanitize: { type: "string" }, "build-only": { type: "boolean" } },
  allowPositionals: true,
})
const root = fileURLToPath(new URL("..", import.meta.url))
const { sanitize } = values
const build = join(root, sanitize ? `build-emulated-${sanitize.replaceAll(",", "-")}` : "build-emulated", "build")
const parallel = String(availableParallelism())

function run(command, args, env = {}) {
  const { status, signal, error } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, GIGPO_CUBLASLT: "off", ...env },
  })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${signal ?? status}.`)
}

const alone = sanitize !== undefined || positionals.length > 0
if (alone) {
  const sanitizers = sanitize ? [`-DGIGPO_SANITIZE=${sanitize}`] : []
  run("cmake", ["-S", root, "-B", build, "-DGIGPO_CUDA=EMULATED", ...sanitizers])
  run("cmake", ["--build", build, "--parallel", parallel])
} else {
  run("npx", ["cmake-js", "compile", "-O", build, "--CDGIGPO_CUDA=EMULATED", "--CDGIGPO_PROGRAMS=ON"])
}
if (values["build-only"]) process.exit()
const chosen = positionals.length > 0 ? `^cuda_(${positionals.join("|")})$` : "^cuda_"
run("ctest", ["--test-dir", build, "--output-on-failure", "--parallel", parallel, "--no-tests=error", "-R", chosen], {
  ASAN_OPTIONS: "detect_stack_use_after_return=0",
  UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
  TSAN_OPTIONS: "halt_on_error=1",
})
// node-gyp-build searches build/Release below the folder in this variable.
if (!alone) run("npx", ["vitest", "run", "test/cuda"], { GIGPO_PREBUILD: join(build, "..") })
