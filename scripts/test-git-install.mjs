// Checks that the package works when it is installed from git. dist/ must exist. The addon does not exist: its first use must fail with the command
// that builds it, and that command must work. Tests the last commit.
//
//   npm run test:install
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeProject, npm, root, run, timeout, userEnvironment } from "./package-user.mjs"

const scratch = mkdtempSync(join(tmpdir(), "git-install-"))
const [project, env] = [join(scratch, "project"), userEnvironment()]
try {
  makeProject(project)
  const commit = run("git", ["rev-parse", "HEAD"], { cwd: root }).trim()
  run(process.execPath, [npm, "install", `git+file://${root}#${commit}`], { cwd: project, env })
  for (const file of ["dist/entries/index.js", "dist/entries/index.d.ts", "src/entries/index.ts"])
    if (!existsSync(join(project, "node_modules/gigpo", file))) throw new Error(`The package has no ${file}.`)

  const missing = doctor()
  const command = missing.said.match(/npx --yes cmake-js@\d+ .*"/)?.[0]
  if (missing.status !== 3 || command === undefined) throw new Error(`Without an addon, doctor said: ${missing.said}`)
  console.log(`Installed from git. ${command}`)
  run(command, [], { cwd: project, env, shell: true })
  const built = doctor()
  if (built.status !== 0) throw new Error(`With the addon built, doctor said: ${built.said}`)
  console.log(`${built.said}The package works.`)
} finally {
  rmSync(scratch, { recursive: true, force: true })
}

function doctor() {
  const { status, stdout, stderr } = spawnSync(process.execPath, [npm, "exec", "--", "gigpo", "doctor"], {
    cwd: project,
    env,
    encoding: "utf8",
    timeout,
  })
  return { status, said: stdout + stderr }
}
