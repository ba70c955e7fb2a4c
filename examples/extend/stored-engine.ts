// An engine for a configuration: the table above with a store, so that runs are saved, resumed and evaluated.
import { copyFile, readFile, writeFile } from "node:fs/promises"
import { basename, join } from "node:path"
import type { OpenEngine } from "gigpo/engine"
import { bigramEngine } from "./engine.ts"

const open: OpenEngine = async ({ model, vocabularySize }) => {
  const engine = bigramEngine(vocabularySize)
  const write = (folder: string) => writeFile(join(folder, "logits"), engine.logits)
  const read = async (folder: string) =>
    engine.logits.set(new Float64Array(new Uint8Array(await readFile(join(folder, "logits"))).buffer))
  await read(model).catch(() => {}) // a model that has not been trained has no table yet
  const store = {
    checkpoint: (folder: string) => write(folder).then(() => null),
    restore: async (_: unknown, folder: string) => read(folder),
    async save(folder: string, { files = [] }: { readonly files?: readonly string[] } = {}) {
      for (const file of [join(model, "config.json"), ...files]) await copyFile(file, join(folder, basename(file)))
      await write(folder)
    },
  }
  return { ...engine, store }
}

export default open
