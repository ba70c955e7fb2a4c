import type { AdapterLayout } from "../../model-files/adapter-layout.ts"
import type { ModelConfig } from "../../model-files/model-config.ts"
import { type ImageLengths, towerOperations } from "./images.ts"
import { type ModelSizes, modelSizes } from "./sizes.ts"

// Amount of computation in one iteration. A product with a matrix of N weights takes 2 N operations per token, its
// backward pass twice as many. Attention over t tokens takes 4 t × (heads × head size) per layer, half of that if
// causal.

export interface Workload {
  readonly episodes: number
  /** Steps of one episode: each is a prompt and a completion, and one training sequence. */
  readonly steps: number
  readonly promptTokens: number
  /** Tokens of a prompt beyond the prefix that it shares with another prompt, which is computed once. Default: all. */
  readonly newTokens?: number | undefined
  readonly completionTokens: number
  /** Images of the prompts; absent without. */
  readonly images?: ImageLengths | undefined
  /** Episodes in progress at once. */
  readonly concurrency: number
  /** Passes over the sequences, and optimizer steps per pass. */
  readonly epochs: number
  readonly updates: number
  /** Whether log-probabilities of the policy are recomputed, and whether those of a reference policy are computed. */
  readonly recomputed: boolean
  readonly reference: boolean
  /** Model of a teacher that computes log-probabilities of every sequence. */
  readonly teacher?: ModelConfig | undefined
  /** Passes of the critic over the sequences, and optimizer steps per pass; absent without a critic. */
  readonly critic?: { readonly epochs: number; readonly updates: number } | undefined
}

/** Number formats and memory options. */
export interface Machinery {
  /** Bytes of an activation or weight. */
  readonly bytesPerNumber: 2 | 4
  readonly recompute: "none" | "norms" | "mlp" | "block"
  readonly momentBytes: 2 | 4
  /** Absent if all weights are trained. */
  readonly adapter?: AdapterLayout | undefined
  /** Whether the vision tower is trained. Default false. */
  readonly trainVision?: boolean
}

export interface Part {
  readonly name:
    | "images"
    | "prefill"
    | "decode"
    | "recomputed"
    | "reference"
    | "teacher"
    | "training"
    | "critic"
    | "optimizer"
  readonly tokens: number
  readonly operations: number
  /** Bytes that must pass between memory and processor; 0 if operations dominate. */
  readonly bytes: number
}

/** Workload of `gigpo sft`: passes over the expert's steps. */
export interface SftTraining {
  /** Steps of the expert. */
  readonly rows: number
  readonly promptTokens: number
  readonly newTokens?: number | undefined
  readonly completionTokens: number
  readonly images?: ImageLengths | undefined
  readonly epochs: number
  readonly completionsPerUpdate: number
}

/** Parts of one iteration. */
export function iterationWork(config: ModelConfig, work: Workload, how: Machinery): Part[] {
  const row = rowWork(config, work, how)
  const rows = work.episodes * work.steps
  const { critic, teacher } = work
  const parts = samplingWork(config, work, how)
  if (work.images) parts[0] = imagesPart(config, rows, work.images, 1 + trainingPasses(how) * work.epochs)
  for (const name of ["recomputed", "reference"] as const)
    if (work[name]) parts.push({ name, tokens: rows * row.length, operations: rows * row.sequence, bytes: 0 })
  if (teacher) {
    const { length, sequence } = rowWork(teacher, work, { ...how, adapter: undefined })
    parts.push({ name: "teacher", tokens: rows * length, operations: rows * sequence, bytes: 0 })
  }
  parts.push(trainingPart(row, work.epochs * rows))
  // The critic predicts every sequence once, then trains on them.
  if (critic)
    parts.push({
      name: "critic",
      tokens: (1 + critic.epochs) * rows * row.length,
      operations: rows * (row.trunk + critic.epochs * row.trainingTrunk),
      bytes: 0,
    })
  const steps = work.epochs * work.updates + (critic ? critic.epochs * critic.updates : 0)
  parts.push(optimizerPart(row.sizes, steps, how))
  return parts
}

/** Parts of sampling alone, as in an evaluation. */
export function samplingWork(config: ModelConfig, work: Workload, how: Machinery): Part[] {
  const { sizes, body, width, attention } = rowWork(config, work, how)
  const { promptTokens: prompt, newTokens: computed = prompt, completionTokens: completion } = work
  const rows = work.episodes * work.steps
  const decodeSteps = Math.ceil(work.episodes / work.concurrency) * work.steps * completion
  const context = prompt + completion / 2
  const kvCacheBytes = sizes.cacheNumbersPerToken * how.bytesPerNumber
  return [
    ...(work.images ? [imagesPart(config, rows, work.images, 1)] : []),
    {
      name: "prefill",
      tokens: rows * computed,
      operations: rows * (2 * body * computed + attention(computed, prompt)),
      bytes: 0,
    },
    {
      name: "decode",
      tokens: rows * completion,
      operations: rows * completion * (2 * (body + sizes.head) + 4 * context * width),
      bytes: decodeSteps * (body + sizes.head) * how.bytesPerNumber + rows * completion * context * kvCacheBytes,
    },
  ]
}

/** Parts of supervised fine-tuning, all epochs together. */
export function sftWork(
  config: ModelConfig,
  { rows, epochs, completionsPerUpdate, ...lengths }: SftTraining,
  how: Machinery,
): Part[] {
  const row = rowWork(config, lengths, how)
  const { images } = lengths
  return [
    ...(images ? [imagesPart(config, rows, images, how.trainVision ? trainingPasses(how) * epochs : 1)] : []),
    trainingPart(row, epochs * rows),
    optimizerPart(row.sizes, epochs * Math.ceil(rows / completionsPerUpdate), how),
  ]
}

type RowWork = ReturnType<typeof rowWork>

/** Operations of one sequence: a prompt and its completion. */
function rowWork(
  config: ModelConfig,
  {
    promptTokens,
    newTokens = promptTokens,
    completionTokens: completion,
  }: Pick<Workload, "promptTokens" | "newTokens" | "completionTokens">,
  { adapter, recompute }: Machinery,
) {
  const sizes = modelSizes(config, adapter)
  const length = newTokens + completion
  const body = sizes.body + sizes.pairs
  const width = config.layers * config.heads * config.headSize
  /** Attention operations of the last `tokens` tokens of a causal sequence of `all`. */
  const attention = (tokens: number, all: number) => 4 * width * tokens * (all - tokens / 2)
  const trunk = 2 * body * length + attention(length, promptTokens + completion)
  const head = 2 * sizes.head * completion
  const again = {
    none: 0,
    norms: 0,
    mlp: 4 * config.layers * config.hiddenSize * config.intermediateSize * length,
    block: trunk,
  }[recompute]
  const isFrozen = adapter !== undefined
  const isHeadFrozen = isFrozen && !adapter.tied && !adapter.whole.includes("lm_head.weight")
  // Forward once, backward twice as much, plus recomputation. A frozen matrix has no gradient, which saves half of its
  // backward pass.
  const trainingTrunk = 3 * trunk - (isFrozen ? 2 * sizes.body * length : 0) + again
  return {
    sizes,
    length,
    body,
    width,
    attention,
    trunk,
    sequence: trunk + head,
    /** Without the critic's head, whose cost is negligible. */
    trainingTrunk,
    training: trainingTrunk + (isHeadFrozen ? 2 : 3) * head,
  }
}

/**
 * Passes of the vision tower in one epoch, in units of a forward pass. A frozen tower's features are known. One that is trained computes the
 * features of changed weights, again for the backward pass, and that takes twice as much.
 */
function trainingPasses({ trainVision = false }: Machinery): number {
  return trainVision ? 4 : 0
}

function imagesPart(config: ModelConfig, rows: number, { newFeatures, patches }: ImageLengths, passes: number): Part {
  const features = rows * newFeatures
  return {
    name: "images",
    tokens: features,
    operations: passes * features * towerOperations(config, patches),
    bytes: 0,
  }
}

function trainingPart({ length, training }: RowWork, rows: number): Part {
  return { name: "training", tokens: rows * length, operations: rows * training, bytes: 0 }
}

function optimizerPart(sizes: ModelSizes, steps: number, how: Machinery): Part {
  const trained = how.adapter ? sizes.adapter : sizes.parameters - (how.trainVision ? 0 : sizes.tower)
  // Weight and both moments are read and written; the gradient is read and cleared.
  const bytesOfStep = 8 + 4 * how.momentBytes + 8 + (how.bytesPerNumber === 2 ? 2 : 0)
  return { name: "optimizer", tokens: 0, operations: 0, bytes: steps * trained * bytesOfStep }
}

/** Lower bound in seconds for a device with these rates. */
export function floorSeconds({ operations, bytes }: Part, rate: number, bandwidth: number): number {
  return Math.max(operations / rate, bytes / bandwidth)
}
