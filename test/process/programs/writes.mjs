// Writes into the folder of the first argument what the second names. Run with ./faulty-disk.mjs imported before.
import { mkdir, writeFile } from "node:fs/promises"

// Hundreds of processes run this, and each loads only what its work needs.

const fill = (value) => new Uint8Array(Float32Array.of(value, value).buffer)
const store = {
  async checkpoint(directory) {
    await mkdir(`${directory}/optimizer`)
    await writeFile(`${directory}/weights.bin`, fill(2))
    await writeFile(`${directory}/optimizer/moments.bin`, fill(2))
    return { steps: 2 }
  },
  save: async (directory) => await writeFile(`${directory}/weights.bin`, fill(2)),
}
const estimator = {
  name: "mine",
  state: () => ({ json: { count: 2 }, arrays: { means: Float64Array.of(2, 2) } }),
  restore: () => {},
}

const work = {
  /** iteration-2 beside iteration-1, which it removes. */
  async checkpoint(parent) {
    const { writeCheckpoint, pruneCheckpoints } = await import("../../../modules/runs/checkpoint.js")
    await writeCheckpoint(parent, 2, { store, critic: async () => store, parts: { estimator } })
    await pruneCheckpoints(parent, 2, 1)
  },
  /** A model in place of another, with other files. */
  async model(target) {
    const { writeDirectory } = await import("../../../modules/files/atomic-directory.js")
    const model = async (temporary) => {
      await store.checkpoint(temporary)
      await writeFile(`${temporary}/config.json`, "new")
    }
    await writeDirectory(target, model, { overwrite: true })
  },
  /** The episodes of a run that went back to its second iteration, and keeps those of three. */
  async episodes(directory) {
    const { recordEpisodes } = await import("../../../modules/view/record/recorder.js")
    const step = {
      observation: { text: "here", anchor: "here" },
      prompt: Int32Array.of(1, 2),
      completion: Int32Array.of(3),
      logProbs: Float32Array.of(-1),
      text: "new",
      action: "new",
      valid: true,
      reward: 1,
      finishReason: "stop",
    }
    const episode = { steps: [step], outcome: "terminated", return: 1, metrics: {} }
    const groups = [{ task: 1, index: 0, episodes: [episode, episode] }]
    const steps = [0, 1].map((member) => ({ task: 0, episode: member }))
    const recorder = recordEpisodes({ tokenizer: { decode: () => "a" }, directory, keep: 3 })
    await recorder.start({ iteration: 2, iterations: 4 })
    for (const iteration of [3, 4]) recorder.episodes(iteration, groups, { advantages: Float64Array.of(1, 1) }, steps)
    await recorder.end({ iteration: 4 })
  },
  /** A run in place of another, with a checkpoint and a model. */
  async run(directory) {
    const { Run } = await import("../../../modules/runs/run.js")
    const run = await Run.open(directory, { seed: 2 }, { overwrite: true })
    try {
      await run.saveCheckpoint(1, { store, parts: { estimator } }, 2)
      await run.saveModel({ store })
    } finally {
      await run.close()
    }
  },
}
await work[process.argv[3]](process.argv[2])
