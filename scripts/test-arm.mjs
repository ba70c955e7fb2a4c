// Runs the tests of the CPU kernels on 64-bit ARM processors in software: one without bf16 instructions, one with.
//
//   node scripts/test-arm.mjs                    # the tests whose kernels differ between processors
//   node scripts/test-arm.mjs matmul_bf16_test   # this program; several may be named
//
// Needs Debian's packages qemu-user and g++-aarch64-linux-gnu.
import { join } from "node:path"
import { compile, root, run, runPrograms } from "./native-programs.mjs"

const kernels = ["vector", "matmul", "kernels", "attention", "sample", "head_lanes"]
/** Processors as qemu names them, the instruction set that gigpo should choose there, and its tests. */
const processors = [
  { cpu: "cortex-a72", isa: "neon", tests: ["isa", "matmul_bf16", ...kernels] },
  { cpu: "max", isa: "neon_bf16", tests: ["isa", "matmul_bf16"] },
]
const chosen = process.argv.slice(2)
const programs = (tests) =>
  tests.map((name) => `${name}_test`).filter((name) => chosen.length === 0 || chosen.includes(name))
const build = join(root, "build-arm")
const settings = {
  CMAKE_SYSTEM_NAME: "Linux",
  CMAKE_SYSTEM_PROCESSOR: "aarch64",
  CMAKE_CXX_COMPILER: "aarch64-linux-gnu-g++",
  CMAKE_CXX_FLAGS_RELEASE: "-O1 -DNDEBUG", // of the tests and the core; the kernels keep -O3
  CMAKE_EXE_LINKER_FLAGS: "-static", // no libraries of ARM are needed
  CMAKE_CROSSCOMPILING_EMULATOR: "qemu-aarch64",
  GIGPO_CUDA: "OFF",
}

run("qemu-aarch64", ["--version"])
compile(
  build,
  Object.entries(settings).map(([name, value]) => `-D${name}=${value}`),
  programs(processors[0].tests),
)
for (const { cpu, isa, tests } of processors) {
  const names = programs(tests)
  if (names.length === 0) continue
  console.log(`${cpu}, which should choose ${isa}:`)
  runPrograms(build, `^(${names.join("|")})$`, {
    QEMU_CPU: cpu,
    GIGPO_TEST_BEST_ISA: isa,
    GIGPO_TEST_ISA: isa,
    GIGPO_TEST_MOST_WORK: "2000000",
  })
}
