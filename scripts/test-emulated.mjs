// Tests the CUDA device without a GPU: the kernels are compiled for the CPU with the emulator in test/cuda/emulator.
//
//   node scripts/test-emulated.mjs                    # the test programs, then the package's tests of the device
//   node scripts/test-emulated.mjs --sanitize thread  # only the programs, with reports of races between GPU threads
//   node scripts/test-emulated.mjs --sanitize address,undefined matmul_test engine_test
//   node scripts/test-emulated.mjs --build-only       # compiles, and runs nothing
//
// On a machine with a GPU, build the same programs by `cmake -S . -B build-cuda && cmake --build build-cuda`, and run them by
// `ctest --test-dir build-cuda`.
import { join } from "node:path"
import { parseArgs } from "node:util"
import { compile, root, run, runPrograms } from "./native-programs.mjs"

const { values, positionals } = parseArgs({
  options: { sanitize: { type: "string" }, "build-only": { type: "boolean" } },
  allowPositionals: true,
})
const { sanitize } = values
const build = join(root, sanitize ? `build-emulated-${sanitize.replaceAll(",", "-")}` : "build-emulated", "build")
const env = { GIGPO_CUBLASLT: "off" }

const alone = sanitize !== undefined || positionals.length > 0
if (alone)
  compile(build, ["-DGIGPO_CUDA=EMULATED", ...(sanitize ? [`-DGIGPO_SANITIZE=${sanitize}`] : [])], ["cuda_programs"])
else
  run("npx", [
    ...["cmake-js", "compile", "-O", build, "-T", "cuda_programs"],
    ...["--CDGIGPO_CUDA=EMULATED", "--CDGIGPO_PROGRAMS=ON"],
  ])
if (!values["build-only"]) {
  const chosen = positionals.length > 0 ? `^cuda_(${positionals.join("|")})(_[0-9]+)?$` : "^cuda_"
  runPrograms(build, chosen, { ...env, ASAN_OPTIONS: "detect_stack_use_after_return=0" })
  // node-gyp-build searches build/Release below the folder in this variable.
  if (!alone) run("npx", ["vitest", "run", "test/cuda"], { ...env, GIGPO_PREBUILD: join(build, "..") })
}
