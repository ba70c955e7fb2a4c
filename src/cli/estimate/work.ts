import type { AdapterLayout } from "../../model-files/adapter-layout.ts"
import type { ModelConfig } from "../../model-files/model-config.ts"
import { type ModelSizes, modelSizes } from "./sizes.ts"

// How much there is to compute in one iteration. A multiplication with a matrix of N weights takes 2 N operations a token, its
// backward pass twice as many. Attention over t tokens takes 4 t × (heads × head size) a layer, half of that where it is causal.

export interface Workload {
  readonly episodes: number
  /** Steps of one episode: each is a prompt and a reply, and one row of training. */
  readonly steps: number
  readonly promptTokens: number
  readonly replyTokens: number
  /** Episodes that are sampled from at once. */
  readonly concurrency: number
  /** Passes over the rows, and optimizer steps of each. */
  readonly epochs: number
  readonly updates: number
  /** Whether the policy's own log-probabilities are recomputed, and a frozen reference's asked for. */
  readonly recomputed: boolean
  readonly reference: boolean
  /** The model of a teacher that is asked for its own of every row. */
  readonly teacher?: ModelConfig | undefined
  /** The critic's passes over the rows, and optimizer steps of each, where one is trained beside the policy. */
  readonly critic?: { readonly epochs: number; readonly updates: number } | undefined
}

/** What it is computed with. */
export interface Machinery {
  /** Of an activation or weight that is computed with. */
  readonly bytesPerNumber: 2 | 4
  readonly recompute: "none" | "norms" | "mlp" | "block"
  readonly momentBytes: 2 | 4
  /** Absent where all weights are trained. */
  readonly adapter?: AdapterLayout | undefined
}

export interface Part {
  readonly name: "prefill" | "decode" | "recomputed" | "reference" | "teacher" | "training" | "critic" | "optimizer"
  readonly tokens: number
  readonly operations: number
  /** That must pass between memory and processor; 0 where operations decide. */
  readonly bytes: number
}

/** What `gigpo sft` computes: passes over the expert's steps. */
export interface SftTraining {
  /** Steps of the expert. */
  readonly rows: number
  readonly promptTokens: number
  readonly replyTokens: number
  readonly epochs: number
  readonly batchSteps: number
}

/**
 * The parts of one iteration. What prompts share with each other is counted as if each were computed alone, so sampling and
 * training can take less.
 */
export function iterationWork(config: ModelConfig, work: Workload, how: Machinery): Part[] {
  const row = rowWork(config, work, how)
  const rows = work.episodes * work.steps
  const { critic, teacher } = work
  const parts = samplingWork(config, work, how)
  for (const name of ["recomputed", "reference"] as const)
    if (work[name]) parts.push({ name, tokens: rows * row.length, operations: rows * row.sequence, bytes: 0 })
  if (teacher) {
    const { length, sequence } = rowWork(teacher, work, { ...how, adapter: undefined })
    parts.push({ name: "teacher", tokens: rows * length, operations: rows * sequence, bytes: 0 })
  }
  parts.push(trainingPart(row, work.epochs * rows))
  // It predicts every row once, then learns from them.
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

/** The parts of playing episodes alone, as an evaluation does. */
export function samplingWork(config: ModelConfig, work: Workload, how: Machinery): Part[] {
  const { sizes, body, width, causal } = rowWork(config, work, how)
  const { promptTokens: prompt, replyTokens: reply } = work
  const rows = work.episodes * work.steps
  const decodeSteps = Math.ceil(work.episodes / work.concurrency) * work.steps * reply
  const context = prompt + reply / 2
  const kvCacheBytes = sizes.cacheNumbersPerToken * how.bytesPerNumber
  return [
    { name: "prefill", tokens: rows * prompt, operations: rows * prompt * (2 * body + causal(prompt)), bytes: 0 },
    {
      name: "decode",
      tokens: rows * reply,
      operations: rows * reply * (2 * (body + sizes.head) + 4 * context * width),
      bytes: decodeSteps * (body + sizes.head) * how.bytesPerNumber + rows * reply * context * kvCacheBytes,
    },
  ]
}

/** The parts of cloning, all epochs together. */
export function sftWork(
  config: ModelConfig,
  { rows, epochs, batchSteps, ...lengths }: SftTraining,
  how: Machinery,
): Part[] {
  const row = rowWork(config, lengths, how)
  return [trainingPart(row, epochs * rows), optimizerPart(row.sizes, epochs * Math.ceil(rows / batchSteps), how)]
}

type RowWork = ReturnType<typeof rowWork>

/** Operations of one row, a prompt and its reply. */
function rowWork(
  config: ModelConfig,
  { promptTokens, replyTokens: reply }: Pick<Workload, "promptTokens" | "replyTokens">,
  { adapter, recompute }: Machinery,
) {
  const sizes = modelSizes(config, adapter)
  const length = promptTokens + reply
  const body = sizes.body + sizes.pairs
  const width = config.layers * config.heads * config.headSize
  /** Of one token in a causal pass over `tokens`. */
  const causal = (tokens: number) => 2 * tokens * width
  const trunk = 2 * body * length + causal(length) * length
  const head = 2 * sizes.head * reply
  const again = {
    none: 0,
    norms: 0,
    mlp: 4 * config.layers * config.hiddenSize * config.intermediateSize * length,
    block: trunk,
  }[recompute]
  const isFrozen = adapter !== undefined
  const isHeadFrozen = isFrozen && !adapter.tied && !adapter.whole.includes("lm_head.weight")
  // Forward once, backward twice as much, and what is computed again. A frozen matrix has no gradient of its own, which is half
  // of the backward pass.
  const trainingTrunk = 3 * trunk - (isFrozen ? 2 * sizes.body * length : 0) + again
  return {
    sizes,
    length,
    body,
    width,
    causal,
    trunk,
    sequence: trunk + head,
    /** A critic's own head is next to nothing. */
    trainingTrunk,
    training: trainingTrunk + (isHeadFrozen ? 2 : 3) * head,
  }
}

function trainingPart({ length, training }: RowWork, rows: number): Part {
  return { name: "training", tokens: rows * length, operations: rows * training, bytes: 0 }
}

function optimizerPart(sizes: ModelSizes, steps: number, how: Machinery): Part {
  const trained = how.adapter ? sizes.adapter : sizes.parameters
  // The weight and both moments are read and written, the gradient is read and cleared.
  const bytesOfStep = 8 + 4 * how.momentBytes + 8 + (how.bytesPerNumber === 2 ? 2 : 0)
  return { name: "optimizer", tokens: 0, operations: 0, bytes: steps * trained * bytesOfStep }
}

/** Seconds that no device with these figures can go below. */
export function floorSeconds({ operations, bytes }: Part, rate: number, bandwidth: number): number {
  return Math.max(operations / rate, bytes / bandwidth)
}
