import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { checkIntact } from "../../files/intact.ts"
import { io } from "../../files/io-error.ts"
import { openSafetensors } from "../../model-files/safetensors.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Json } from "../../util/state.ts"
import type { ModelStore } from "../engine.ts"
import type { LearnerFiles } from "./learner-files.ts"
import type { Turns } from "./turns.ts"

// Checkpoints of the native engine: the folder of a model, or of an adapter, as Hugging Face and PEFT have them, with AdamW's
// moments in optimizer/model.safetensors.

/** What a checkpoint is made of: a policy's files, or a critic's. */
type Stored = Omit<LearnerFiles, "base" | "takeWeights" | "frozen">

interface Checks {
  /** Throws where nothing is trained: there is no checkpoint to go on from, and no room for moments. */
  readonly training?: () => void
  /** Throws where weights must not be changed now. */
  readonly change: () => void
}

export function nativeStore(
  learner: Stored,
  turns: Turns,
  { training: checkTraining = () => {}, change }: Checks,
): ModelStore {
  const adapted = learner.lora !== undefined
  return {
    get bytes() {
      return learner.bytes
    },
    save: async (directory, options) => await turns.reading(() => learner.save(directory, options), options?.signal),
    checkpoint: async (directory, options) => {
      checkTraining()
      const optimizer = join(directory, "optimizer")
      const write = async () => {
        // A merged model could not be split again; the base stays where it is and is known by its hash.
        await (adapted ? learner.saveAdapter(directory, options) : learner.save(directory, options))
        await io("create", optimizer, mkdir(optimizer))
        await learner.saveOptimizer(join(optimizer, "model.safetensors"))
        return learner.steps
      }
      const optimizerSteps = await turns.reading(write)
      await checkFinite(directory, adapted ? "adapter_model.safetensors" : undefined)
      await checkFinite(optimizer)
      return { optimizerSteps }
    },
    restore: async (handle, directory) => {
      checkTraining()
      change()
      const steps = stepsOf(handle, directory)
      await turns.changing(async () => {
        for (const folder of [directory, join(directory, "optimizer")]) await checkIntact(folder, "model")
        await (adapted ? learner.loadAdapter(directory) : learner.load(directory))
        await learner.loadOptimizer(join(directory, "optimizer"), steps)
      })
    },
  }
}

function stepsOf(handle: Json, directory: string): number {
  const steps =
    typeof handle === "object" && handle !== null && "optimizerSteps" in handle ? handle.optimizerSteps : undefined
  if (typeof steps === "number" && Number.isSafeInteger(steps) && steps >= 0) return steps
  throw new GigpoError(
    "BAD_ARGUMENT",
    `The checkpoint in ${directory} does not say how many optimizerSteps it stands at.`,
  )
}

/** One bad update must not replace the last good checkpoint. */
async function checkFinite(directory: string, file?: string): Promise<void> {
  const files = await openSafetensors(directory, file)
  try {
    for (const tensor of files.names) {
      for await (const chunk of files.read(tensor)) {
        // Weights and moments are saved as float32: all bits of the exponent set means infinity or NaN.
        const bits = new Uint32Array(chunk.buffer, chunk.byteOffset, chunk.byteLength / 4)
        for (let i = 0; i < bits.length; i++) if ((bits[i]! & 0x7f800000) === 0x7f800000) throw diverged(tensor)
      }
    }
  } finally {
    await files.close()
  }
}

function diverged(tensor: string): GigpoError {
  return new GigpoError(
    "NON_FINITE",
    `${tensor} holds numbers that are not finite; older checkpoints stay as they are. Start a new run from one of them (its ` +
      "folder as the model) with a lower learning rate.",
  )
}
