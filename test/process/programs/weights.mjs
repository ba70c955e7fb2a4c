// Does in the folder of the first argument what the second names, as `gigpo engine` does. Run with ./faulty-disk.mjs imported before.
import { writeFile } from "node:fs/promises"

const { KeptWeights } = await import("../../../modules/engine-server/kept-weights.js")

const fill = (value) => new Uint8Array(Float32Array.of(value, value).buffer)
const store = {
  async checkpoint(directory) {
    await writeFile(`${directory}/config.json`, "{}")
    await writeFile(`${directory}/weights.bin`, fill(2))
    await writeFile(`${directory}/moments.bin`, fill(2))
    return { steps: 2 }
  },
}
const [folder, name] = process.argv.slice(2)
const kept = new KeptWeights(folder)
const model = { id: "s:train:0", baseModel: "tiny", rank: 0, policy: { store } }
if (name === "remove") await kept.remove("tinker://s:train:0/weights/latest")
else await kept.save(model, "weights", "latest", name === "overwrite")
