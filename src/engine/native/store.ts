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

// Checkpoints of the native engine: a model folder in Hugging Face layout or an adapter in PEFT's layout, with AdamW's moments in
// optimizer/model.safetensors.

/** Files of a policy or critic that a checkpoint consists of. */
type Stored = Omit<LearnerFiles, "base" | "takeWeights" | "frozen">

interface Checks {
  /** Throws for a policy without training, which has no moments to save or restore. */
  readonly training?: () => void
  /** Throws while weights must not be changed. */
  readonly change: () => void
}

/** Returns the store of a policy or critic. */
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
        // A merged model could not be split again. The base model is not copied; its hash identifies it.
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
    `The checkpoint in ${directory} has no valid optimizerSteps in its manifest. Use another checkpoint.`,
  )
}

/** Throws `NON_FINITE` for infinite or NaN values, so that a diverged state does not replace the last good checkpoint. */
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
    `${tensor} contains numbers that are not finite; older checkpoints are unchanged. Start a new run from one of them (its ` +
      "folder as the model) with a lower learning rate.",
  )
}
