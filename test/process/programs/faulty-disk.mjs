// To be imported before a program: counts what it writes to the disk, and from one write on kills it or makes all writes fail.
// GIGPO_TEST_DISK is "<what>:<after how many>", what being kill or the code of an error; the count goes to the file GIGPO_TEST_WRITES.
import { writeFileSync } from "node:fs"
import fs from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"

const [what = "", after = "Infinity"] = (process.env.GIGPO_TEST_DISK ?? "").split(":")
let writes = 0
const fault = (call) => {
  if (writes++ < Number(after)) return undefined
  if (what === "kill") process.kill(process.pid, "SIGKILL")
  return Promise.reject(Object.assign(new Error(`${what}: made to fail`), { code: what, syscall: call }))
}
const counted = (target, names, isWrite = () => true) => {
  for (const name of names) {
    const original = target[name]
    target[name] = function (...all) {
      return (isWrite(...all) && fault(name)) || original.apply(this, all)
    }
  }
}
const handle = await fs.open(process.execPath)
const files = Object.getPrototypeOf(handle)
// What a process wrote outlives it; waiting for the disk would only make this as slow as the disk is busy.
files.sync = async () => {}
counted(files, ["write", "writeFile", "sync"])
await handle.close()
counted(fs, ["mkdir", "writeFile", "copyFile", "rename", "link", "symlink"])
// Reading needs no disk that can be written, and room can always be made.
const reads = (flags) => (typeof flags === "number" ? (flags & 3) === 0 : flags === "r")
counted(fs, ["open"], (_, flags = "r") => !reads(flags))
if (what === "kill" || what === "EROFS") counted(fs, ["rm", "rmdir"])
syncBuiltinESMExports()
process.on("exit", () => {
  if (process.env.GIGPO_TEST_WRITES) writeFileSync(process.env.GIGPO_TEST_WRITES, String(writes))
})
