// Builds the core's test programs with sanitizers, without Node, and runs them:
//
//   node scripts/test-sanitized.mjs                    # AddressSanitizer, with leaks, and UndefinedBehaviorSanitizer
//   node scripts/test-sanitized.mjs thread             # ThreadSanitizer
//   node scripts/test-sanitized.mjs thread engine_test # one program only
//   node scripts/test-sanitized.mjs --build-only       # compiles the programs and does not run them
import { spawnSync } from "node:child_process"
import { readdirSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

const { values, positionals } = parseArgs({ options: { "build-only": { type: "boolean" } }, allowPositionals: true })
const [sanitizers = "address,undefined", ...chosen] = positionals
const root = fileURLToPath(new URL("..", import.meta.url))
const build = join(root, `build-${sanitizers.replaceAll(",", "-")}`)
const programs = readdirSync(join(root, "test/core"))
  .filter((name) => name.endsWith("_test.cpp"))
  .map((name) => name.slice(0, -4))
  .filter((name) => chosen.length === 0 || chosen.includes(name))

function run(command, args, env = {}) {
  const { status, signal, error } = spawnSync(command, args, { stdio: "inherit", env: { ...process.env, ...env } })
  if (error) throw error
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${signal ?? status}.`)
}

run("cmake", ["-S", root, "-B", build, "-DGIGPO_CUDA=OFF", `-DGIGPO_SANITIZE=${sanitizers}`])
const parallel = String(availableParallelism())
run("cmake", ["--build", build, "--parallel", parallel, "--target", ...programs])
if (values["build-only"]) process.exit()
// In parallel, because most programs use only one processor.
run(
  "ctest",
  [
    "--test-dir",
    build,
    "--output-on-failure",
    "--parallel",
    parallel,
    "--no-tests=error",
    "-R",
    `^(${programs.join("|")})$`,
  ],
  {
    ASAN_OPTIONS: "detect_leaks=1:detect_stack_use_after_return=1",
    UBSAN_OPTIONS: "halt_on_error=1:print_stacktrace=1",
    TSAN_OPTIONS: "halt_on_error=1",
  },
)
