// Builds the addon as it goes into the npm package: prebuilds/<platform>-<arch>/, where node-gyp-build finds it at run time. One
// binary serves every Node (Node-API 8), every x86-64 CPU and every GPU; `--without-cuda` makes one without GPU code.
//
//   npm run package:native
import { execFileSync } from "node:child_process"
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { examineBinary } from "./package-binary.mjs"
import { sourcesDigest } from "./package-sources.mjs"

const { values } = parseArgs({ options: { "without-cuda": { type: "boolean", default: false } } })
const root = fileURLToPath(new URL("..", import.meta.url))
const { name, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const { platform, arch } = process
const linux = platform === "linux"
// What node-gyp-build reads in the name: a binary for glibc is no match where there is musl.
const libc = process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl"
const file = linux ? `${name}.${libc}.node` : `${name}.node`

const sources = sourcesDigest(root)
const work = "build-prebuilt"
const cmakeJs = createRequire(import.meta.url).resolve("cmake-js/bin/cmake-js")
const options = [`--CDGIGPO_CUDA=${values["without-cuda"] ? "OFF" : "ON"}`, "--CDGIGPO_PREBUILT=ON"]
run(process.execPath, [cmakeJs, "rebuild", "--out", work, ...options])
if (sourcesDigest(root) !== sources) throw new Error("The sources changed while they were built. Build again.")

const folder = join(root, "prebuilds", `${platform}-${arch}`)
const binary = join(folder, file)
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
copyFileSync(join(root, work, "Release", `${name}.node`), binary)
chmodSync(binary, 0o644)
if (platform !== "win32") run("strip", linux ? ["--strip-all", binary] : ["-Sx", binary])

const gpus = values["without-cuda"] ? [] : ["sm_80", "sm_90a", "compute_100"]
const found = linux ? examineBinary(binary, root, gpus) : { problems: [] }
if (found.problems.length > 0) {
  rmSync(folder, { recursive: true })
  throw new Error(`The binary is not fit for other machines: it ${found.problems.join("; it ")}.`)
}
const { problems: _, ...record } = found
writeFileSync(join(folder, "build.json"), `${JSON.stringify({ version, file, sources, ...record }, null, 2)}\n`)
console.log(`prebuilds/${platform}-${arch}/${file}`, record)

function run(command, args) {
  execFileSync(command, args, { cwd: root, stdio: "inherit" })
}
