// Prints how much resident memory grows, in MB, between some of a kind of work and much more of it.
import { createPolicy, request, stepSequence } from "./model.mjs"

async function collect() {
  globalThis.gc()
  await new Promise((resolve) => setTimeout(resolve, 10))
}

async function resident() {
  for (let turn = 0; turn < 5; turn++) await collect()
  return process.memoryUsage.rss() / 2 ** 20
}

/** Growth between the first `few` and all `many` calls of `work`. */
async function measure(few, many, work) {
  let start
  for (let i = 0; i < many; i++) {
    await work(i)
    if (i + 1 === few) start = await resident()
  }
  return (await resident()) - start
}

const row = stepSequence(new Int32Array(30).fill(5), new Int32Array(30).fill(6))

const kinds = {
  /** After two thousand samples, ten thousand more. */
  async samples() {
    const policy = await createPolicy()
    const { signal } = new AbortController()
    return await measure(20, 120, async (batch) => {
      const calls = Array.from({ length: 100 }, (_, i) => policy.sample({ ...request, key: [i, batch], signal }))
      await Promise.all(calls)
    })
  },
  async training() {
    const policy = await createPolicy()
    return await measure(100, 600, async () => {
      await policy.forwardBackward([row, row], { kind: "cross-entropy" })
      await policy.optimizerStep({ learningRate: 1e-4 })
    })
  },
  async aborts() {
    const policy = await createPolicy()
    return await measure(500, 3000, async () => {
      const controller = new AbortController()
      const { signal } = controller
      const calls = [policy.sample({ ...request, signal }), policy.logProbs([row], { signal })]
      controller.abort()
      await Promise.allSettled(calls)
    })
  },
  async engines() {
    return await measure(10, 60, async () => {
      const policy = await createPolicy()
      await policy.sample(request)
      await policy.dispose()
    })
  },
  /** Nobody disposes of these: collecting them must do. */
  async forgotten() {
    return await measure(10, 40, async () => {
      const policy = await createPolicy()
      await policy.sample(request)
      await collect()
    })
  },
}

console.log((await kinds[process.argv[2]]()).toFixed(1))
