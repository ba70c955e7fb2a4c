// Ends worker threads while their engines work; the main thread has an engine of its own, before and after.
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import { createPolicy, request, sampleLong, trainLong, underWay } from "./model.mjs"

if (isMainThread) {
  const policy = await createPolicy()
  const before = await policy.sample(request)
  for (const way of ["terminate", "exit", "throw"]) {
    const worker = new Worker(new URL(import.meta.url), { workerData: { work: process.argv[2], way } })
    worker.on("error", (error) => console.log(`worker: ${error.message}`))
    const exited = new Promise((resolve) => worker.on("exit", resolve))
    const [{ tokens }] = await new Promise((resolve) => worker.once("message", (...message) => resolve(message)))
    if (way === "terminate") await worker.terminate()
    await exited
    if (tokens.join() !== before.tokens.join()) throw new Error("The worker sampled something else.")
    console.log(way)
  }
  const after = await policy.sample(request)
  console.log(after.tokens.join() === before.tokens.join() ? "same" : "different")
} else {
  const policy = await createPolicy()
  const { tokens } = await policy.sample(request)
  const working = workerData.work === "sample" ? sampleLong(policy) : trainLong(policy)
  working.catch(() => {})
  await underWay(policy)
  parentPort.postMessage({ tokens })
  if (workerData.way === "exit") process.exit(0)
  if (workerData.way === "throw") throw new Error("thrown on purpose")
}
