import { basename, resolve } from "node:path"
import { findBase } from "../engine/native/adapter-base.ts"
import { layoutOfStored, readAdapterConfig } from "../model-files/adapter-files.ts"
import { projectionNames } from "../model-files/adapter-layout.ts"
import { ggufName } from "../model-files/gguf/families.ts"
import { rotaryHeads, toPairs } from "../model-files/gguf/rotary-rows.ts"
import { type GgufSource, type TypedValue, writeGguf } from "../model-files/gguf/write.ts"
import { type ModelConfig, readModelConfig } from "../model-files/model-config.ts"
import { openSafetensors, type TensorFiles } from "../model-files/safetensors.ts"
import { native } from "../native/native.ts"
import { GigpoError } from "../util/errors.ts"
import { conventionsOf } from "./metadata.ts"

const text = (value: string): TypedValue => ({ type: "string", value })

/**
 * Writes a LoRA adapter as a GGUF file that llama.cpp adds to a model (`--lora`). The factors are F32.
 *
 * @param adapter - folder in PEFT layout.
 * @param path - file that is written.
 * @throws GigpoError `BAD_MODEL` if the base model is missing, or for fully trained modules, which the format cannot contain.
 */
export async function exportAdapterGguf(adapter: string, path: string): Promise<void> {
  const stored = await readAdapterConfig(adapter)
  const model = await readModelConfig(await findBase(adapter, stored, { weights: false }))
  const { ranks, scales, whole } = layoutOfStored(adapter, stored, model, "language")
  if (whole.length > 0)
    throw new GigpoError(
      "BAD_MODEL",
      `${adapter} has fully trained modules (${whole.join(", ")}), which a GGUF adapter cannot contain. Export the merged model instead.`,
    )
  const files = await openSafetensors(adapter, "adapter_model.safetensors")
  try {
    // llama.cpp scales each pair of factors by alpha / rank, with one alpha for all. Other scales are multiplied into the second factor.
    const first = ranks.findIndex((rank) => rank > 0)
    const alpha = scales[first]! * ranks[first]!
    const tensors = projectionNames(model).flatMap((name, i) =>
      ranks[i] === 0 ? [] : pair(files, model, name, (scales[i]! * ranks[i]!) / alpha),
    )
    const metadata = new Map<string, TypedValue>([
      ["general.architecture", text(conventionsOf(model).name)],
      ["general.type", text("adapter")],
      ["general.name", text(basename(resolve(adapter)))],
      ["adapter.type", text("lora")],
      ["adapter.lora.alpha", { type: "float32", value: alpha }],
    ])
    await writeGguf(path, metadata, tensors)
  } finally {
    await files.close()
  }
}

/** The two factors of one projection: [rank, in] and [out, rank]. */
function pair(files: TensorFiles, model: ModelConfig, module: string, factor: number): GgufSource[] {
  const weight = `${module}.weight`
  const family = conventionsOf(model)
  const stored = ggufName(weight, family)
  const parts = family.interleaved ? rotaryHeads(weight, model) : undefined
  return (["A", "B"] as const).map((letter) => {
    const name = `base_model.model.${module}.lora_${letter}.weight`
    const { shape } = files.info(name)
    const chunks = () => factorOf(files, name, letter === "B" ? { factor, parts } : { factor: 1, parts: undefined })
    return { name: `${stored}.lora_${letter.toLowerCase()}`, type: "F32", shape, chunks }
  })
}

async function* factorOf(
  files: TensorFiles,
  name: string,
  { factor, parts }: { readonly factor: number; readonly parts: number | undefined },
): AsyncGenerator<Uint8Array> {
  const { dtype, shape } = files.info(name)
  const values = new Float32Array(shape.reduce((a, b) => a * b, 1))
  let filled = 0
  for await (const chunk of files.read(name)) {
    const numbers = await native().dequantize(dtype, chunk)
    values.set(
      numbers.map((value) => value * factor),
      filled,
    )
    filled += numbers.length
  }
  const bytes = new Uint8Array(values.buffer)
  if (parts === undefined) return yield bytes
  const [head, rows] = [new Uint8Array(bytes.length / parts), shape[0]! / parts]
  for (let at = 0; at < bytes.length; at += head.length) {
    toPairs(bytes.subarray(at), head, { at: 0, rows, rowBytes: head.length / rows })
    yield head
  }
}
