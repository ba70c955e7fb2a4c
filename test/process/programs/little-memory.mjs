// What the system rejects, memory or threads, ends a call and never the process. To be run where the address space is limited.
import { readFileSync } from "node:fs"
import { native } from "../../../modules/native/native.js"
import { GigpoError } from "../../../modules/util/errors.js"
import { createPolicy } from "./model.mjs"

const outcome = async (use) => {
  try {
    await use()
    return "a result"
  } catch (error) {
    return GigpoError.is(error) ? error.code : String(error)
  }
}
/** Bytes of address space that are left. */
function room() {
  const [, used] = readFileSync("/proc/self/status", "utf8").match(/VmSize:\s+(\d+) kB/)
  const [, limit] = readFileSync("/proc/self/limits", "utf8").match(/Max address space\s+(\d+)/)
  return Number(limit) - 1024 * Number(used)
}

const policy = await createPolicy()
// More stacks than there is room for.
const threads = await outcome(async () => await (await createPolicy({ threads: 1000 })).dispose())
// Arguments that take most of the room, and leave too little for the result.
const rows = Math.floor(room() / 10)
const large = await outcome(() => native().tokenLogProbs(new Float32Array(rows), 1, new Int32Array(rows), 1, "cpu"))
const works = await outcome(() =>
  policy.sample({ prompt: Int32Array.of(1), maxTokens: 4, stopTokens: [], key: [1, 2] }),
)
await policy.dispose()
console.log(JSON.stringify({ threads, large, works }))
