// After prebuildify: is the binary in prebuilds/<platform>-<arch>/ fit for other machines? If so, build.json beside it says what it
// was built from; if not, it goes.
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
if (others.length > 0) throw new Error(`prebuilds/${platform} holds ${others} besides ${file}. Remove what is old.`)

const gpus = process.env.GIGPO_CUDA === "OFF" ? [] : ["sm_80", "sm_90a", "compute_100"]
const { problems, ...found } =
  process.platform === "linux" ? examineBinary(join(folder, file), root, gpus) : { problems: [] }
if (problems.length > 0) {
  rmSync(folder, { recursive: true })
  throw new Error(`The binary is not fit for other machines: it ${problems.join("; it ")}.`)
}
const record = { version, file, sources: sourcesDigest(root), ...found }
writeFileSync(join(folder, "build.json"), `${JSON.stringify(record, null, 2)}\n`)
console.log(`prebuilds/${platform}/${file}`, found)
