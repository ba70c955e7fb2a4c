// Builds the core's test programs and fuzz targets with sanitizers, without Node, and runs them:
//
//   node scripts/test-sanitized.mjs                    # AddressSanitizer, with leaks, and UndefinedBehaviorSanitizer; fuzz targets for 5 s each
//   node scripts/test-sanitized.mjs thread             # ThreadSanitizer
//   node scripts/test-sanitized.mjs thread engine_test # one program only
//   node scripts/test-sanitized.mjs --build-only       # compiles the programs and does not run them
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { compile, root, runPrograms } from "./native-programs.mjs"

const { values, positionals } = parseArgs({ options: { "build-only": { type: "boolean" } }, allowPositionals: true })
const [sanitizers = "address,undefined", ...chosen] = positionals
const build = join(root, `build-${sanitizers.replaceAll(",", "-")}`)
const tests = readdirSync(join(root, "test/core")).filter((name) => name.endsWith("_test.cpp"))
// Their limits of memory need AddressSanitizer.
const targets = readdirSync(join(root, "test/core/fuzz")).filter((name) => name.endsWith("_fuzz.cpp"))
const sources = sanitizers.includes("address") ? [...tests, ...targets] : tests
const programs = [...sources.map((name) => name.slice(0, -4)), "amx_test"].filter(
  (name) => chosen.length === 0 || chosen.includes(name),
)

compile(
  build,
  ["-DGIGPO_CUDA=OFF", `-DGIGPO_SANITIZE=${sanitizers}`],
  chosen.length === 0 ? ["core_programs"] : programs,
)
if (!values["build-only"])
  runPrograms(build, `^(${programs.join("|")})(_[0-9]+)?$`, {
    ASAN_OPTIONS: "detect_leaks=1:detect_stack_use_after_return=1",
  })
