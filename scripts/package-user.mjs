// Environment of a user who installs the package: an empty project folder, Node, npm and environment variables.
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))
export const npm = process.env.npm_execpath ?? join(dirname(process.execPath), "../lib/node_modules/npm/bin/npm-cli.js")
/** Where package-pack.mjs writes the packages. */
export const packages = join(root, "build-packages")
/** Milliseconds after which a step has hung. An emulated processor takes minutes for some. */
export const timeout = 600_000

/** File of gigpo's package. */
export function mainTarball() {
  const file = existsSync(packages) && readdirSync(packages).find((name) => /^gigpo-\d.*\.tgz$/.test(name))
  if (!file) throw new Error("There are no packages: npm run package")
  return join(packages, file)
}

export function makeProject(folder) {
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }))
}

/** Environment variables of the system and the network, without those of npm and of builds. */
export function userEnvironment() {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|node_(env|options|path)|gigpo|cc$|cxx|cuda|cmake)/i.test(name),
  )
  return Object.fromEntries(kept)
}

/** Runs a command and returns stdout. Throws an error with all output if the command fails. */
export function run(command, args, options) {
  const { status, signal, error, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", timeout, ...options })
  if (error) throw error
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${signal ?? status}:\n${stdout}${stderr}`)
  return stdout
}
