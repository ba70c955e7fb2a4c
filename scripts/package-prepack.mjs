// npm runs this before packing, and afterwards `prepare`, which builds dist/. Packing is refused without a binary for this platform, or with a
// binary of other sources. Publishing requires the binary for Linux.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { stalePrebuilds } from "./package-sources.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const platform = process.env.npm_command === "publish" ? "linux-x64" : `${process.platform}-${process.arch}`
const problems = stalePrebuilds(root)
if (!existsSync(join(root, "prebuilds", platform))) problems.push(`prebuilds/${platform} is missing.`)
if (problems.length > 0) {
  console.error(
    `The package would not load: ${problems.join(" ")}\n` +
      "Build it: npm ci && npm run package:native (without nvcc: GIGPO_CUDA=OFF npm run package:native, which has no GPU code)",
  )
  process.exit(1)
}
