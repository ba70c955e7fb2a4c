import type { ModelConfig } from "../../model-files/model-config.ts"
import { countParameters } from "../../model-files/model-tensors.ts"

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
  /** The critic's passes over the rows, and optimizer steps of each, where one is trained beside the policy. */
  readonly critic?: { readonly epochs: number; readonly updates: number } | undefined
}

/** What it is computed with. */
export interface Machinery {
  /** Of an activation or weight that is computed with. */
  readonly bytesPerNumber: 2 | 4
  readonly recompute: "none" | "norms" | "mlp" | "block"
  readonly momentBytes: 2 | 4
  /** 0: all weights are trained. */
  readonly loraRank: number
}

export interface Part {
  readonly name: "prefill" | "decode" | "recomputed" | "reference" | "training" | "critic" | "optimizer"
  readonly tokens: number
  readonly operations: number
  /** That must pass between memory and processor; 0 where operations decide. */
  readonly bytes: number
}

/** Weights by how they are used. */
export interface ModelSizes {
  readonly parameters: number
  /** In the multiplications of the layers. */
  readonly body: number
  readonly head: number
  readonly adapter: number
  /** Of keys and values, one token. */
  readonly cacheNumbersPerToken: number
}

export function modelSizes(config: ModelConfig, loraRank: number): ModelSizes {
  const { hiddenSize: h, intermediateSize: i, layers, vocabularySize } = config
  const q = config.heads * config.headSize
  const kv = config.keyValueHeads * config.headSize
  const shapes: readonly (readonly [rows: number, columns: number])[] = [
    [q, h],
    [kv, h],
    [kv, h],
    [h, q],
    [i, h],
    [i, h],
    [h, i],
  ]
  return {
    parameters: countParameters(config),
    body: layers * shapes.reduce((sum, [rows, columns]) => sum + rows * columns, 0),
    head: vocabularySize * h,
    adapter: layers * loraRank * shapes.reduce((sum, [rows, columns]) => sum + rows + columns, 0),
    cacheNumbersPerToken: 2 * layers * kv,
  }
}

/**
 * The parts of one iteration. What prompts share with each other is counted as if each were computed alone, so sampling and
 * training can take less.
 */
export function iterationWork(config: ModelConfig, work: Workload, how: Machinery): Part[] {
  const sizes = modelSizes(config, how.loraRank)
  const { promptTokens: prompt, replyTokens: reply } = work
  const rows = work.episodes * work.steps
  const length = prompt + reply
  const body = sizes.body + sizes.adapter
  const width = config.layers * config.heads * config.headSize
  /** Of one token in a causal pass over `tokens`. */
  const causal = (tokens: number) => 2 * tokens * width
  const trunkPass = 2 * body * length + causal(length) * length
  const sequencePass = trunkPass + 2 * sizes.head * reply

  const decodeSteps = Math.ceil(work.episodes / work.concurrency) * work.steps * reply
  const context = prompt + reply / 2
  const cacheBytes = sizes.cacheNumbersPerToken * how.bytesPerNumber
  const parts: Part[] = [
    { name: "prefill", tokens: rows * prompt, operations: rows * prompt * (2 * body + causal(prompt)), bytes: 0 },
    {
      name: "decode",
      tokens: rows * reply,
      operations: rows * reply * (2 * (body + sizes.head) + 4 * context * width),
      bytes: decodeSteps * (body + sizes.head) * how.bytesPerNumber + rows * reply * context * cacheBytes,
    },
  ]
  for (const name of ["recomputed", "reference"] as const)
    if (work[name]) parts.push({ name, tokens: rows * length, operations: rows * sequencePass, bytes: 0 })
  parts.push({
    name: "training",
    tokens: work.epochs * rows * length,
    operations: work.epochs * rows * trainingOperations(config, sizes, length, reply, how, sequencePass),
    bytes: 0,
  })
  // It foretells every row once, then learns from them. Its own head is next to nothing.
  const valueSizes = { ...sizes, head: 0 }
  const { critic } = work
  if (critic)
    parts.push({
      name: "critic",
      tokens: (1 + critic.epochs) * rows * length,
      operations:
        rows * (trunkPass + critic.epochs * trainingOperations(config, valueSizes, length, reply, how, trunkPass)),
      bytes: 0,
    })
  const trained = how.loraRank > 0 ? sizes.adapter : sizes.parameters
  // The weight and both moments are read and written, the gradient is read and cleared.
  const bytesOfStep = 8 + 4 * how.momentBytes + 8 + (how.bytesPerNumber === 2 ? 2 : 0)
  const steps = work.epochs * work.updates + (critic ? critic.epochs * critic.updates : 0)
  parts.push({ name: "optimizer", tokens: 0, operations: 0, bytes: steps * trained * bytesOfStep })
  return parts
}

/** Of one row: forward once, backward twice as much, and what is computed again. */
function trainingOperations(
  config: ModelConfig,
  sizes: ModelSizes,
  length: number,
  reply: number,
  how: Machinery,
  forward: number,
): number {
  // A frozen matrix has no gradient of its own, which is half of the backward pass.
  const frozen = how.loraRank > 0 ? 2 * (sizes.body * length + sizes.head * reply) : 0
  const layers = forward - 2 * sizes.head * reply
  const again = {
    none: 0,
    norms: 0,
    mlp: 4 * config.layers * config.hiddenSize * config.intermediateSize * length,
    block: layers,
  }[how.recompute]
  return 3 * forward - frozen + again
}

/** Seconds that no device with these figures can go below. */
export function floorSeconds({ operations, bytes }: Part, rate: number, bandwidth: number): number {
  return Math.max(operations / rate, bytes / bandwidth)
}
