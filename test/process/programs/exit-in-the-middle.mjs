// Leaves by process.exit, or by an uncaught error, while the engine works.
import { createPolicy, sampleLong, trainLong, underWay } from "./model.mjs"

const [work, way] = process.argv.slice(2)
const policy = await createPolicy()
const working = work === "sample" ? sampleLong(policy) : trainLong(policy)
working.then(
  () => console.log("finished"),
  () => console.log("rejected"),
)
await underWay(policy)
console.log("leaving")
if (way === "throw") throw new Error("thrown on purpose")
process.exit(0)
