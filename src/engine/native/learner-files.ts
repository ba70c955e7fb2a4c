import { createHash } from "node:crypto"
import { mkdir } from "node:fs/promises"
import { resolve } from "node:path"
import { io } from "../../files/io-error.ts"
import { hubNameOf } from "../../hub/names.ts"
import type { AdapterConfig } from "../../model-files/adapter-config.ts"
import {
  type AdapterBase,
  openAdapter,
  tiedEmbedding,
  tiedHead,
  writeAdapter,
} from "../../model-files/adapter-files.ts"
import type { AdapterLayout } from "../../model-files/adapter-layout.ts"
import type { ConfigJson } from "../../model-files/config-fields.ts"
import { copyInto } from "../../model-files/copied-files.ts"
import { type Head, type ModelConfig, writeModelConfig } from "../../model-files/model-config.ts"
import { checkTensors } from "../../model-files/model-tensors.ts"
import { openSafetensors, type TensorFiles } from "../../model-files/safetensors.ts"
import { writeSafetensors, writeShardedSafetensors } from "../../model-files/safetensors-writer.ts"
import { settleHead } from "../../model-files/tied-head.ts"
import type { NativeLearner } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"
import type { FrozenWeights } from "../engine.ts"
import { type DiskBytes, diskBytes } from "./disk.ts"
import { hashBuffer } from "./hash-weights.ts"
import { type StoredBuffer, tensorSources, trainedParameters, writeTensors } from "./tensor-transfer.ts"

/** What its files say of a learner, beside the weights. */
export interface LearnerModel {
  readonly config: ModelConfig
  readonly head: Head
  /** Absent where the whole model is trained. */
  readonly lora: { readonly config: AdapterConfig; readonly layout: AdapterLayout } | undefined
  /** The config.json that the model came with. */
  readonly original: Readonly<Record<string, unknown>> | undefined
}

interface SaveOptions {
  /** Copied beside the weights: a tokenizer's, say. */
  readonly files?: readonly string[]
  /** Aborting it leaves what was written so far. */
  readonly signal?: AbortSignal | undefined
}

/** Files of a policy or of its critic, in Hugging Face layout; of an adapter as PEFT has them. */
export class LearnerFiles {
  readonly #learner: NativeLearner
  readonly #model: LearnerModel
  readonly #beside: LearnerFiles | undefined
  #base: AdapterBase = {}
  /** The adapter_config.json of the adapter that was opened. */
  #stored: ConfigJson | undefined

  /** @param beside - of whom the model is, where this is an adapter beside another's. */
  constructor(learner: NativeLearner, model: LearnerModel, beside?: LearnerFiles) {
    this.#learner = learner
    this.#model = model
    this.#beside = beside
  }

  get lora(): AdapterConfig | undefined {
    return this.#model.lora?.config
  }

  /** The files that the model is from. */
  get base(): AdapterBase {
    return this.#beside?.base ?? this.#base
  }

  /** Copies the weights into the engine. What an adapter stands beside is hashed on the way, to be known again. */
  async takeWeights(files: TensorFiles, directory: string, signal?: AbortSignal): Promise<void> {
    const hash = this.lora && createHash("sha256")
    const tensors = this.#learner.parameters.map(({ name }, index) => ({ index, name }))
    const begin = (name: string) => {
      const { dtype, shape } = files.info(name)
      hash?.update(JSON.stringify([name, dtype, shape]))
    }
    const pass = (bytes: Uint8Array) => hash?.update(bytes)
    await writeTensors(this.#learner, "weights", files, tensors, { begin, pass, signal })
    this.#base = { directory: resolve(directory), ...(hash && { sha256: hash.digest("hex") }) }
  }

  /** As in `Trainable`: of an adapter's model the hash is known already, of the rest it is of what the engine holds now. */
  async frozen(reference: boolean, signal?: AbortSignal): Promise<FrozenWeights | undefined> {
    if (!reference && !this.lora) return undefined
    const { directory, sha256 } = this.base
    const hash = (buffer: StoredBuffer) => hashBuffer(this.#learner, buffer, signal)
    const name = directory && hubNameOf(directory)
    return {
      ...(directory !== undefined && { directory }),
      ...(name && { name }),
      ...(this.lora && { base: sha256 ?? (await hash("weights")) }),
      ...(reference && { reference: await hash(this.lora ? "adapter" : "weights") }),
    }
  }

  /** What the folders take on the disk. */
  get bytes(): DiskBytes {
    const { config, head } = this.#model
    return diskBytes(config, head, this.#model.lora?.layout)
  }

  async save(directory: string, options: SaveOptions = {}): Promise<void> {
    const { config, head, original } = this.#model
    await io("create", directory, mkdir(directory, { recursive: true }))
    const parted = head === "language" && this.#learner.mergedParameters.some(({ name }) => name === "lm_head.weight")
    const merged = { ...config, tieEmbeddings: config.tieEmbeddings && !parted }
    await writeModelConfig(directory, merged, { dtype: "F32", head, ...(original && { original }) })
    await writeShardedSafetensors(
      directory,
      tensorSources(this.#learner, this.lora ? "merged" : "weights", options.signal),
    )
    await copyInto(directory, options.files)
  }

  async load(directory: string): Promise<void> {
    const files = await openSafetensors(directory)
    try {
      const { config, head } = this.#model
      const found = head === "language" ? await settleHead(config, files) : config
      if (found.tieEmbeddings !== config.tieEmbeddings)
        throw new GigpoError(
          "BAD_MODEL",
          `The model in ${directory} has a head of its own; this policy's head is its embedding.`,
        )
      checkTensors(config, files, head)
      await this.takeWeights(files, directory)
    } finally {
      await files.close()
    }
  }

  async saveAdapter(directory: string, options: SaveOptions = {}): Promise<void> {
    const adapter = this.#adapter()
    await io("create", directory, mkdir(directory, { recursive: true }))
    const { head } = this.#model
    const sources = () => tensorSources(this.#learner, "adapter", options.signal)
    const tied = adapter.layout.tied ? sources().filter(({ name }) => name === tiedEmbedding) : []
    await writeAdapter(directory, { config: adapter.config, head, base: this.base, original: this.#stored }, [
      ...sources(),
      ...tied.map((source) => ({ ...source, name: tiedHead })),
    ])
    await copyInto(directory, options.files)
  }

  async loadAdapter(directory: string, signal?: AbortSignal): Promise<void> {
    const adapter = this.#adapter()
    const parameters = this.#learner.adapterParameters
    const { config: model, head } = this.#model
    const { files, stored } = await openAdapter(directory, { model, head, base: this.base, ...adapter }, parameters)
    try {
      const tensors = parameters.map(({ name }, index) => ({ index, name }))
      await writeTensors(this.#learner, "adapter", files, tensors, { signal })
      this.#stored = stored.json
    } finally {
      await files.close()
    }
  }

  #adapter(): NonNullable<LearnerModel["lora"]> {
    if (this.#model.lora) return this.#model.lora
    throw new GigpoError("BAD_ARGUMENT", "This policy has no adapter; open it with lora: { rank: 32 }.")
  }

  async saveOptimizer(path: string): Promise<void> {
    const moments = [...tensorSources(this.#learner, "firstMoment"), ...tensorSources(this.#learner, "secondMoment")]
    await writeSafetensors(path, moments, { format: "gigpo-adamw", steps: String(this.steps) })
  }

  async loadOptimizer(directory: string, steps: number): Promise<void> {
    const files = await openSafetensors(directory)
    try {
      for (const buffer of ["firstMoment", "secondMoment"] satisfies StoredBuffer[]) {
        const tensors = trainedParameters(this.#learner).map(({ name, shape }, index) => {
          const stored = `${buffer}.${name}`
          if (files.info(stored).shape.join() !== shape.join())
            throw new GigpoError("BAD_MODEL", `${directory}: ${stored} has the shape of another model or adapter.`)
          return { index, name: stored }
        })
        await writeTensors(this.#learner, buffer, files, tensors)
      }
      this.#learner.steps = steps
    } finally {
      await files.close()
    }
  }

  get steps(): number {
    return this.#learner.steps
  }
}
