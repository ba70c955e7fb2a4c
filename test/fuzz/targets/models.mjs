// Folders of models and of adapters on them, opened as for sampling.
import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { NativePolicy } from "../../../modules/engine/native/native-policy.js"
import { fixture, seedsOf, withChanged } from "./files.mjs"

const small = { device: "cpu", threads: 1, kvCacheBytes: 2 ** 20, microBatchTokens: 64 }
const wanted = { model: /^(config|generation_config)\.json$|^model.*$/, adapter: /^adapter_/ }

export async function prepare(scratch) {
  const folder = join(scratch, "folder")
  for (const [part, from] of [
    ["model", "models/qwen3"],
    ["adapter", "adapters/qwen3"],
  ]) {
    mkdirSync(join(folder, part), { recursive: true })
    cpSync(fixture(from), join(folder, part), { recursive: true, filter: (path) => path === fixture(from) || wanted[part].test(path.split("/").at(-1)) }) // biome-ignore format: one line
  }
  return {
    seeds: seedsOf(folder),
    run: (input) =>
      withChanged(folder, join(scratch, "changed"), input, async (changed) => {
        const [base, adapter] = [join(changed, "model"), join(changed, "adapter")]
        const isAdapter = input.name.startsWith("adapter")
        const policy = await NativePolicy.open(isAdapter ? adapter : base, { ...small, ...(isAdapter && { base }) })
        await policy.dispose()
      }),
  }
}
