import { denseIds } from "./credit/anchors.ts"
import type { Aggregation, PolicyLossOptions } from "./engine/engine.ts"
import { GigpoError } from "./errors.ts"
import { resolveLossOptions, trainingAggregations } from "./loss/loss-options.ts"
import { native } from "./native.ts"

// The three kernels the package is named for, on typed arrays. Inside the engine they run fused, on its own memory.

/**
 * Log-probability of one token a row, and the entropy of the row's distribution in nats, in one pass.
 *
 * @param logits - [rows × vocabulary], row after row.
 * @param vocabulary - logits in a row.
 * @param tokens - [rows], each in 0 … vocabulary - 1.
 * @param options.temperature - the distribution is softmax(logits / temperature). Default 1.
 */
export function tokenLogProbs(
  logits: Float32Array,
  vocabulary: number,
  tokens: Int32Array,
  options: { readonly temperature?: number } = {},
): { logProbs: Float32Array; entropies: Float32Array } {
  const { temperature = 1 } = options
  if (!Number.isSafeInteger(vocabulary) || vocabulary < 1) throw bad("vocabulary must be a whole number of at least 1")
  if (logits.length !== vocabulary * tokens.length)
    throw bad(`${tokens.length} tokens need ${vocabulary * tokens.length} logits, not ${logits.length}`)
  if (!(temperature > 0 && Number.isFinite(temperature))) throw bad(`temperature must be positive, not ${temperature}`)
  for (const [row, token] of tokens.entries()) {
    if (token < 0 || token >= vocabulary) throw bad(`tokens[${row}] is ${token}, outside 0 … ${vocabulary - 1}`)
  }
  return native().tokenLogProbs(logits, vocabulary, tokens, temperature)
}

/** Tokens of several rows, one after the other; arrays are [tokens] but for `rows`. */
export interface SurrogateInput {
  readonly logProbs: Float32Array
  readonly oldLogProbs: Float32Array
  readonly advantages: Float32Array
  /** 1 for a token that counts, 0 for one that does not. */
  readonly mask: Float32Array
  /** Length of each row; they sum to the number of tokens. */
  readonly rows: Int32Array
  readonly referenceLogProbs?: Float32Array
}

export interface SurrogateOptions
  extends Omit<PolicyLossOptions, "entropyWeight" | "aggregation" | "skipZeroAdvantage"> {
  /** Besides those of training: the sum over tokens divided by the length of the longest row. Default "token-mean". */
  readonly aggregation?: Aggregation | "sequence-mean-token-sum-norm"
}

export interface SurrogateReport {
  /** policyLoss + klWeight × kl */
  readonly loss: number
  readonly policyLoss: number
  readonly kl: number
  /** Share of tokens whose gradient the clip, or the dual clip, cut off. */
  readonly clipFraction: number
  readonly dualClipFraction: number
  /** Mean of old log p - new log p. */
  readonly policyKl: number
  /** Mean importance ratio. */
  readonly ratio: number
  /** d loss / d logProbs, [tokens]. */
  readonly gradient: Float32Array
}

/** PPO's clipped surrogate (dual clip, KL term) and its gradient by the log-probabilities. Options as in `PolicyLossOptions`. */
export function clippedSurrogate(input: SurrogateInput, options: SurrogateOptions = {}): SurrogateReport {
  const tokens = input.logProbs.length
  for (const name of ["oldLogProbs", "advantages", "mask", "referenceLogProbs"] as const) {
    const values = input[name]
    if (values !== undefined && values.length !== tokens) throw bad(`${name} must be as long as logProbs (${tokens})`)
  }
  const sum = input.rows.reduce((total, length) => total + length, 0)
  if (sum !== tokens || input.rows.some((length) => length < 0))
    throw bad(`rows must hold the lengths of the rows, summing to ${tokens}, not ${sum}`)
  const complete = resolveLossOptions(options, [...trainingAggregations, "sequence-mean-token-sum-norm"])
  if (complete.klWeight !== 0 && input.referenceLogProbs === undefined) throw bad("a klWeight needs referenceLogProbs")
  return native().clippedSurrogate(input, complete)
}

/** States as bytes: state i is bytes[offsets[i] … offsets[i + 1]). */
export interface AnchorBytes {
  readonly bytes: Uint8Array
  /** [states + 1], never decreasing. */
  readonly offsets: Float64Array
}

export interface GroupAnchorsOptions {
  /**
   * Default "auto": the first CUDA device for 65,536 states or more, where there is one, since the states have to travel there;
   * the CPU otherwise. The groups are the same.
   */
  readonly device?: "auto" | "cpu" | "cuda"
}

const worthTravelling = 65_536

/**
 * Steps of one task that stood in the same state get the same group: dense ids in order of first occurrence. States are hashed
 * natively, and compared: a collision never merges two. Strings are copied to bytes first: for strings that were not used as
 * keys before, as an environment's texts are, that is faster than a JavaScript `Map` (see the benchmark `anchors`).
 *
 * @param tasks - [states], any keys.
 * @throws GigpoError `DEVICE_UNAVAILABLE` where "cuda" is asked for and there is none.
 */
export function groupAnchors(
  tasks: ArrayLike<number | string>,
  anchors: readonly string[] | AnchorBytes,
  options: GroupAnchorsOptions = {},
): { groups: Int32Array; count: number } {
  if (!("bytes" in anchors) && tasks.length !== anchors.length)
    throw bad(`${anchors.length} anchors need as many tasks, not ${tasks.length}`)
  const { bytes, offsets } = "bytes" in anchors ? anchors : toBytes(anchors)
  if (offsets.length !== tasks.length + 1)
    throw bad(`${tasks.length} states need ${tasks.length + 1} offsets, not ${offsets.length}`)
  for (let i = 0; i < offsets.length; i++) {
    const [at, before] = [offsets[i]!, i === 0 ? 0 : offsets[i - 1]!]
    if (!Number.isSafeInteger(at) || at < before || at > bytes.length)
      throw bad(`offsets[${i}] is ${at}: offsets are whole numbers that never decrease, up to ${bytes.length}`)
  }
  const ids = tasks instanceof Int32Array ? tasks : denseIds(tasks)
  const { device = "auto" } = options
  if (!["auto", "cpu", "cuda"].includes(device)) throw bad(`device is "${device}"; it must be "auto", "cpu" or "cuda"`)
  const travels = device === "auto" && tasks.length >= worthTravelling && native().deviceReport().devices.length > 0
  return native().groupAnchors(ids, bytes, offsets, device === "cuda" || travels)
}

/** UTF-16, in which every string is itself: UTF-8 would make one character of all lone surrogates. */
function toBytes(anchors: readonly string[]): AnchorBytes {
  const bytes = Buffer.allocUnsafeSlow(anchors.reduce((sum, anchor) => sum + 2 * anchor.length, 0))
  const offsets = new Float64Array(anchors.length + 1)
  for (let i = 0; i < anchors.length; i++)
    offsets[i + 1] = offsets[i]! + bytes.write(anchors[i]!, offsets[i]!, "utf16le")
  return { bytes, offsets }
}

function bad(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${what}.`)
}
