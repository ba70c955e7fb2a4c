import { NativePolicy, readPolicyConfig } from "../engine/native/native-policy.ts"
import { memoryPlan, type NativePolicyOptions } from "../engine/native/options.ts"
import type { ModelConfig } from "../model-files/model-config.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { GigpoError } from "../util/errors.ts"
import { type Config, policyOptions } from "./config/config.ts"
import { activity } from "./terminal/activity.ts"

/** Maximum tokens per call of the teacher. */
const most = 4096

/** Configured teacher before it is opened. */
interface Teacher {
  readonly directory: string
  readonly model: ModelConfig
  readonly options: NativePolicyOptions
}

/**
 * Opens the configured teacher for inference, if `needs` requires one. Call before opening the policy, which takes the
 * remaining memory.
 *
 * @throws GigpoError `BAD_CONFIG` if none is configured or its maximum length is below the model's; `BAD_TOKENIZER` if
 * its tokens differ.
 */
export async function openTeacher(
  config: Config,
  needs: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<NativePolicy | undefined> {
  const teacher = await readTeacher(config, needs)
  if (!teacher) return undefined
  const { directory, options } = teacher
  await using ours = await Tokenizer.open(config.model)
  await using theirs = await Tokenizer.open(directory)
  ours.checkSameTokens(theirs)
  return await activity.during(`opening the teacher ${directory}`, () =>
    NativePolicy.open(directory, { ...options, signal }),
  )
}

/**
 * Reads the teacher's configuration without opening it. Memory for its forward passes is reserved in place of a KV
 * cache, since a teacher samples nothing.
 */
export async function readTeacher(config: Config, needs: ReadonlySet<string>): Promise<Teacher | undefined> {
  const { teacher: directory } = config
  if (!needs.has("teacher")) return undefined
  if (directory === undefined) throw bad("The loss or the estimator needs a teacher: set teacher to its model folder.")
  const [model, student] = [await readPolicyConfig(directory), await readPolicyConfig(config.model)]
  const { maxPositions = student.maxPositions } = config
  if (model.maxPositions < maxPositions)
    throw bad(
      `The teacher in ${directory} reads at most ${model.maxPositions} tokens, the model ${maxPositions}: set maxPositions to ` +
        `${model.maxPositions}, or choose another teacher.`,
    )
  const { lora: _, microBatchTokens = most, ...rest } = policyOptions(config)
  const requested = {
    ...rest,
    maxPositions,
    microBatchTokens: Math.min(microBatchTokens, most),
    recompute: "none",
  } as const
  const { activations } = memoryPlan({ ...model, maxPositions }, requested)
  return { directory, model, options: { ...requested, kvCacheBytes: activations, training: false } }
}

function bad(message: string): GigpoError {
  return new GigpoError("BAD_CONFIG", message)
}
