// npm runs this before it packs: dist/ holds what src/ says now and nothing of before, and no prebuilt binary is of other sources.
// To publish, there must be one for Linux.
import { execFileSync } from "node:child_process"
import { existsSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { stalePrebuilds } from "./package-sources.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))
const problems = stalePrebuilds(root)
if (process.env.npm_command === "publish" && !existsSync(join(root, "prebuilds/linux-x64")))
  problems.push("prebuilds/linux-x64 is missing.")
if (problems.length > 0) {
  console.error(`${problems.join("\n")}\nBuild it: npm run package:native`)
  process.exit(1)
}
rmSync(join(root, "dist"), { recursive: true, force: true })
// npm's own output goes to stderr: with --json, stdout is the list of files.
execFileSync(process.platform === "win32" ? "npm.cmd" : "npm", ["run", "--silent", "build:ts"], {
  cwd: root,
  stdio: ["ignore", 2, 2],
  shell: process.platform === "win32",
})
