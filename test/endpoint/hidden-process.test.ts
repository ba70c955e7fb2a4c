import { spawnSync } from "node:child_process"
import { resolve } from "node:path"
import { expect, it } from "vitest"

/** A process that holds a key, and a program of it that looks for the key in /proc. */
const holder = (hides: boolean) => `
  const { hideProcess } = require(${JSON.stringify(resolve("build/Release/gigpo.node"))})
  if (${hides}) hideProcess()
  const { stdout } = require("node:child_process").spawnSync("cat", [\`/proc/\${process.pid}/environ\`], { env: {} })
  process.stdout.write(String(stdout.includes("sk-secret")))
`
/** As root, another user: root may read everything. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
const finds = (hides: boolean) =>
  spawnSync(process.execPath, ["-e", holder(hides)], {
    ...user,
    cwd: "/",
    encoding: "utf8",
    env: { PATH: process.env.PATH, TINKER_API_KEY: "sk-secret" },
  }).stdout

it.skipIf(process.platform !== "linux")(
  "a process that is hidden keeps its environment from what it starts",
  ({ skip }) => {
    if (finds(false) !== "true")
      skip("here no process reads another's environment, or another user cannot load the addon")
    expect(finds(true)).toBe("false")
  },
)
