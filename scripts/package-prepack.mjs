// npm runs this before it packs, and `prepare` after it, which makes dist/. What has no binary that loads here, or one of other sources,
// is not packed; to publish, there must be one for Linux.
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
