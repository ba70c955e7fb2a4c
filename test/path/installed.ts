import { execFile } from "node:child_process"
import { copyFile, mkdir, readFile, rename, symlink, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const root = fileURLToPath(new URL("../..", import.meta.url))
const run = promisify(execFile)

/**
 * Packs the package and unpacks it into an empty project as npm would, without a network: its dependencies are links to those of this
 * repository, and the addon is the one that was built here. Returns the path of the command.
 */
export async function installPackage(project: string): Promise<string> {
  const modules = join(project, "node_modules")
  await mkdir(modules, { recursive: true })
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }))
  const shell = process.platform === "win32"
  // Without scripts: dist/ is not made anew while other tests use it.
  const words = ["pack", "--json", "--ignore-scripts", "--pack-destination", project]
  const [{ filename }] = JSON.parse((await run("npm", words, { cwd: root, shell })).stdout)
  await run("tar", ["-xzf", filename], { cwd: project })
  const installed = join(modules, "gigpo")
  await rename(join(project, "package"), installed)
  const { bin, dependencies } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"))
  for (const name of Object.keys(dependencies)) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, "node_modules", name), join(modules, name), "junction")
  }
  await mkdir(join(installed, "build/Release"), { recursive: true })
  await copyFile(join(root, "build/Release/gigpo.node"), join(installed, "build/Release/gigpo.node"))
  return join(installed, bin.gigpo)
}
