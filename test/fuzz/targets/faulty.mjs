// A reader with every fault that is looked for, one after another, and with none from then on.
const kept = []
const faults = [
  () => null.length,
  () => void Promise.reject(new Error("left alone")),
  () => {
    const before = process.cpuUsage()
    for (let spent = 0; spent < 800_000; ) {
      const { user, system } = process.cpuUsage(before)
      spent = user + system
    }
  },
  () => void kept.push(new Uint8Array(2 ** 28).fill(1)),
  () => process.abort(),
  () => {
    for (;;);
  },
]

/** @param first - number of the first input, which differs in a process that continues after another */
export async function prepare(_, first) {
  let next = first - 1 // the seed comes before it
  return {
    seeds: [{ name: "seed", bytes: Buffer.from("[1]") }],
    async run() {
      const index = next++
      if (index >= first) await faults[index]?.()
      await new Promise((resolve) => setImmediate(resolve)) // in which what was left alone is found
    },
  }
}
