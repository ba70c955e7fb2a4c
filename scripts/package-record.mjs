// Runs after prebuildify. Checks that the binary in prebuilds/<platform>-<arch>/ works on other machines. If so, build.json in the same folder
// records its sources; if not, the folder is removed.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { examineBinary } from "./package-binary.mjs"
import { sourcesDigest } from "./package-sources.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const platform = `${process.platform}-${process.arch}`
const folder = join(root, "prebuilds", platform)
const [file, ...others] = readdirSync(folder).filter((name) => name.endsWith(".node"))
if (others.length > 0) throw new Error(`prebuilds/${platform} contains ${others} besides ${file}. Remove old files.`)

const gpus = process.env.GIGPO_CUDA === "OFF" ? [] : ["sm_80", "sm_90a", "compute_100"]
const { problems, ...found } =
  process.platform === "linux" ? examineBinary(join(folder, file), root, gpus) : { problems: [] }
if (problems.length > 0) {
  rmSync(folder, { recursive: true })
  throw new Error(`The binary does not work on other machines: it ${problems.join("; it ")}.`)
}
const record = { version, file, sources: sourcesDigest(root), ...found }
writeFileSync(join(folder, "build.json"), `${JSON.stringify(record, null, 2)}\n`)
console.log(`prebuilds/${platform}/${file}`, found)
