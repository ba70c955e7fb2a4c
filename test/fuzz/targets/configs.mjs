// Configurations of models of every architecture, up to the plan of their memory, and of image processors, with which a small image is prepared.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { memoryPlan } from "../../../modules/engine/native/options.js"
import { readImageProcessor } from "../../../modules/image-processor/read.js"
import { readModelConfig } from "../../../modules/model-files/model-config.js"
import { fixture } from "./files.mjs"

const read = (...path) => JSON.parse(readFileSync(fixture(path.join("/")), "utf8"))
const folders = (parent) => readdirSync(fixture(parent)).map((name) => read(parent, name, "config.json"))
const towers = ["qwen2-5-vl", "smolvlm"].map((name) => read("vision", `${name}.json`).config)
const { qwen, smolvlm } = read("images", "processors.json")

const image = { width: 40, height: 30, data: new Uint8Array(3 * 40 * 30).fill(7) }
const policies = [
  { device: "cpu", kvCacheBytes: 2 ** 20, microBatchTokens: 64 },
  { device: "cuda", lora: { rank: 4, alpha: 8 } },
]

export async function prepare(scratch) {
  const seedsOf = (name, configs) => configs.map((config) => ({ name, bytes: Buffer.from(JSON.stringify(config)) }))
  const readers = {
    "config.json": async () => {
      const config = await readModelConfig(scratch)
      for (const policy of policies) for (const available of [2 ** 40, undefined]) memoryPlan(config, policy, available)
    },
    "preprocessor_config.json": async () => {
      const processor = await readImageProcessor(scratch)
      processor?.prepare(image)
    },
  }
  return {
    seeds: [
      ...seedsOf("config.json", [...folders("models"), ...folders("architectures"), ...towers]),
      ...seedsOf("preprocessor_config.json", [qwen[0].config, smolvlm[0].config]),
    ],
    async run({ name, bytes }) {
      writeFileSync(join(scratch, name), bytes)
      await readers[name]()
    },
  }
}
