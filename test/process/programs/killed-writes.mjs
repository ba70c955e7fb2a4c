// Writes checkpoint step-2 beside step-1 and removes that one, and is killed at the write of the given number.
import fs from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"

const [parent, survive] = [process.argv[2], Number(process.argv[3])]
let writes = 0
const counted = (target, names) => {
  for (const name of names) {
    const original = target[name]
    target[name] = function (...all) {
      if (writes++ === survive) process.kill(process.pid, "SIGKILL")
      return original.apply(this, all)
    }
  }
}
const handle = await fs.open(process.argv[1])
counted(Object.getPrototypeOf(handle), ["write", "writeFile", "sync", "close"])
await handle.close()
counted(fs, ["mkdir", "open", "writeFile", "copyFile", "rename", "rm"])
syncBuiltinESMExports()
writes = 0

const { writeCheckpoint, pruneCheckpoints } = await import("../../../dist/training/checkpoint.js")
const fill = (value) => new Uint8Array(Float32Array.of(value, value).buffer)
const store = {
  async checkpoint(directory) {
    await fs.mkdir(`${directory}/optimizer`)
    await fs.writeFile(`${directory}/weights.bin`, fill(2))
    await fs.writeFile(`${directory}/optimizer/moments.bin`, fill(2))
    return { steps: 2 }
  },
}
const estimator = {
  name: "mine",
  state: () => ({ json: { count: 2 }, arrays: { means: Float64Array.of(2, 2) } }),
  restore: () => {},
}
await writeCheckpoint(parent, 2, { store, critic: async () => store, parts: { estimator } })
await pruneCheckpoints(parent, 2, 1)
process.stdout.write(`${writes}\n`)
