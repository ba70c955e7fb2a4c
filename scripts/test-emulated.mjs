// Tests the CUDA device where there is no GPU: its kernels compiled for the CPU, over test/cuda/emulator.
//
//   node scripts/test-emulated.mjs                    # the test programs, then the package's tests of the device
//   node scripts/test-emulated.mjs --sanitize thread  # the programs alone, with races between GPU threads reported
//   node scripts/test-emulated.mjs --sanitize address,undefined matmul_test engine_test
//
// On a machine with a GPU, the same programs are built by `cmake -S . -B build-cuda && cmake --build build-cuda` and run by
// `ctest --test-dir build-cuda`.
import { spawnSync } from "node:child_process"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const { values, positionals } = parseArgs({ options: { sanitize: { type: "string" } }, allowPositionals: true })
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
const chosen = positionals.length > 0 ? `^cuda_(${positionals.join("|")})$` : "^cuda_"
run("ctest", ["--test-dir", build, "--output-on-failure", "--parallel", parallel, "--no-tests=error", "-R", chosen], {
  ASAN_OPTIONS: "detect_stack_use_after_return=0",
  UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
  TSAN_OPTIONS: "halt_on_error=1",
})
// node-gyp-build looks for build/Release below the folder that this variable names.
if (!alone) run("npx", ["vitest", "run", "test/cuda"], { GIGPO_PREBUILD: join(build, "..") })
