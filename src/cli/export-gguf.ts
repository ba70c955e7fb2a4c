import { exportAdapterGguf } from "../export/adapter.ts"
import { exportGguf } from "../export/gguf.ts"
import { modelfile } from "../export/modelfile.ts"
import type { Recipe } from "../export/recipes.ts"
import { replaceFile } from "../files/atomic-file.ts"
import { checkNewFile } from "../files/check-new-file.ts"
import { readIfThere } from "../files/regular-file.ts"
import { isAdapterFolder } from "../model-files/adapter-files.ts"
import { checkModelFolder } from "../model-files/model-folder.ts"
import { GigpoError } from "../util/errors.ts"
import { resolveModel } from "./model.ts"
import { activity } from "./terminal/activity.ts"

/**
 * Writes a model, the newest model of a run, or an adapter as a GGUF file. For a model, a Modelfile for Ollama is
 * written next to it, and first: the GGUF file is there when all is done.
 */
export async function exportAsGguf(
  named: string,
  out: string,
  { type, overwrite }: { readonly type: Recipe | undefined; readonly overwrite: boolean },
): Promise<void> {
  if (!out.endsWith(".gguf")) throw new GigpoError("BAD_ARGUMENT", `${out} must have the extension .gguf.`)
  const model = await resolveModel(named)
  await checkModelFolder(model)
  const adapter = await isAdapterFolder(model)
  if (adapter && type !== undefined)
    throw new GigpoError("BAD_ARGUMENT", `${model} is an adapter, which is written as f32; omit --dtype.`)
  const own = `${out.slice(0, -".gguf".length)}.Modelfile`
  await checkNewFile(out, overwrite)
  // A Modelfile without its GGUF file is of an export that was killed.
  if (!adapter) await checkNewFile(own, overwrite || (await isModelfileOf(own, out)))
  await activity.during(`exporting ${model} as gguf`, async () => {
    if (adapter) return await exportAdapterGguf(model, out)
    await exportGguf(model, out, type ?? "f16", (stops) => replaceFile(own, modelfile(out, stops)))
  })
}

async function isModelfileOf(path: string, gguf: string): Promise<boolean> {
  const text = await readIfThere(path, 65536).catch(() => undefined)
  return text?.startsWith(modelfile(gguf, [])) ?? false
}
