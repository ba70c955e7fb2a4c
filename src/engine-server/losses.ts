import { ApiError } from "../chat/api-error.ts"
import type { ClippedSurrogate, LinearLoss, Trainable } from "../engine/engine.ts"
import type { Sequence } from "../engine/sequence.ts"
import type { Datum } from "../tinker/datum.ts"
import type { TrainingResult } from "../tinker/results.ts"
import type { TrainingCall } from "../tinker/training-call.ts"
import { type Owner, Pace, type Pieces } from "../util/pace.ts"
import type { Departures } from "./departures.ts"

// Losses of the API, as sums over all tokens of all data: lp = log-probability, q = logprobs, r = exp(lp - q), A = advantages.

interface Loss {
  readonly inputs: readonly string[]
  /** Settings with their defaults. */
  readonly config: Readonly<Record<string, number>>
  /** Returns the loss of one target and its derivative by lp. */
  readonly of: (token: Token, config: Readonly<Record<string, number>>) => readonly [loss: number, derivative: number]
  /** Returns the bounds of the ratio, for losses with a native kernel. */
  readonly bounds?: (config: Readonly<Record<string, number>>) => readonly [low: number, high: number]
}
interface Token {
  readonly lp: number
  readonly q: number
  readonly A: number
  readonly w: number
}

const creditInputs = ["target_tokens", "logprobs", "advantages"]
const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high)
/** Larger than any ratio. */
const unbounded = 1e30

const importance: Loss = {
  inputs: creditInputs,
  config: {},
  of: ({ lp, q, A }) => [-Math.exp(lp - q) * A, -Math.exp(lp - q) * A],
  bounds: () => [-unbounded, unbounded],
}

/** Losses by name. */
export const losses: Readonly<Record<string, Loss>> = {
  // -Σ w lp
  cross_entropy: {
    inputs: ["target_tokens", "weights"],
    config: {},
    of: ({ lp, w }) => [-w * lp, -w],
  },
  // -Σ r A
  importance_sampling: importance,
  // -Σ min(r A, clip(r, low, high) A)
  ppo: {
    inputs: creditInputs,
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    of: ({ lp, q, A }, { clip_low_threshold: low, clip_high_threshold: high }) => {
      const r = Math.exp(lp - q)
      const [plain, bounded] = [-r * A, -clamp(r, low!, high!) * A]
      return bounded > plain ? [bounded, 0] : [plain, plain]
    },
    bounds: ({ clip_low_threshold: low, clip_high_threshold: high }) => [low!, high!],
  },
  // -Σ sg(clip(r, low, high)) lp A
  cispo: {
    inputs: creditInputs,
    config: { clip_low_threshold: 0, clip_high_threshold: 4 },
    of: ({ lp, q, A }, { clip_low_threshold: low, clip_high_threshold: high }) => {
      const r = clamp(Math.exp(lp - q), low!, high!)
      return [-r * lp * A, -r * A]
    },
  },
  // -Σ (lp A - β/2 (lp - q)²)
  dro: {
    inputs: creditInputs,
    config: { beta: 0.05 },
    of: ({ lp, q, A }, { beta }) => [-(lp * A - (beta! / 2) * (lp - q) ** 2), -(A - beta! * (lp - q))],
  },
}

/** Checked call: sequences with one segment that covers all targets. */
export interface Prepared {
  readonly name: string
  readonly loss: Loss
  readonly config: Readonly<Record<string, number>>
  readonly sequences: readonly Sequence[]
  readonly data: readonly Datum[]
}

/**
 * Checks a call, one datum per piece of work.
 *
 * @throws ApiError 422 for an unknown loss, input or setting; 400 for invalid data.
 */
export function* prepare(
  { loss: named, config: given, data }: TrainingCall,
  departures: Departures,
  vocabularySize: number,
): Pieces<Prepared> {
  const silent = departures.has("silent-cross-entropy") && (named === "ppo" || named === "cispo")
  const loss = Object.hasOwn(losses, named) ? losses[named] : undefined
  if (!loss || (named === "dro" && departures.has("no-dro")))
    throw new ApiError(422, `The loss ${quoted(named)} is not supported; supported: ${Object.keys(losses).join(", ")}.`)
  if (data.length === 0) throw new ApiError(400, "data is empty; send at least one datum.")
  for (const [key, value] of Object.entries(given))
    if (!Object.hasOwn(loss.config, key) || typeof value !== "number" || !Number.isFinite(value))
      throw new ApiError(
        422,
        `The loss ${named} has no setting ${quoted(key)} with this value; its settings, all finite numbers: ` +
          `${Object.keys(loss.config).join(", ") || "none"}.`,
      )
  const config = { ...loss.config, ...(given as Readonly<Record<string, number>>) }
  const allowed = departures.has("mean-of-means") ? [...loss.inputs, "weights"] : loss.inputs
  const sequences: Sequence[] = []
  for (const [index, datum] of data.entries()) {
    yield
    const strange = [...datum.inputs.keys()].find((name) => !allowed.includes(name))
    if (strange !== undefined)
      throw new ApiError(
        422,
        `data[${index}]: the loss ${named} has no input ${quoted(strange)}; its inputs are ${allowed.join(", ")}.`,
      )
    sequences.push(rowOf(datum, index, loss.inputs, vocabularySize))
  }
  return {
    name: silent ? "cross_entropy" : named,
    loss: silent ? losses.cross_entropy! : loss,
    config,
    sequences,
    data,
  }
}

/** Quotes an untrusted name for a message. */
const quoted = (name: string) => JSON.stringify(name.slice(0, 100))

function rowOf({ tokens, inputs }: Datum, index: number, needed: readonly string[], vocabularySize: number): Sequence {
  const bad = (what: string) => new ApiError(400, `data[${index}]: ${what}.`)
  for (const name of needed) if (name !== "weights" && !inputs.has(name)) throw bad(`${name} is missing`)
  const targets = inputs.get("target_tokens")
  if (!(targets instanceof Int32Array)) throw bad("target_tokens must be integers (int64)")
  if (tokens.length === 0) throw bad("it has no tokens")
  for (let i = 0; i < targets.length; i++) {
    if (targets[i]! < 0 || targets[i]! >= vocabularySize)
      throw bad(`token ${targets[i]} is not in the vocabulary of ${vocabularySize}`)
    if (i + 1 < tokens.length && targets[i] !== tokens[i + 1])
      throw bad("target_tokens must be the next tokens of the input; other targets are not supported")
  }
  for (const values of inputs.values()) if (!values.every(Number.isFinite)) throw bad("a number is not finite")
  const row = new Int32Array(tokens.length + 1)
  row.set(tokens)
  row[tokens.length] = targets.at(-1)!
  return { tokens: row, segments: [{ start: 1, length: tokens.length }] }
}

/** Options of the calls of a model. */
export interface CallOptions {
  readonly departures: Departures
  /** Client whose turns of the event loop the work takes. Default: those of all other work. */
  readonly owner?: Owner
}

/** Returns the log-probabilities of all targets, without a gradient. */
export async function score(policy: Trainable, prepared: Prepared, options: CallOptions): Promise<TrainingResult> {
  const { logProbs } = await policy.logProbs(prepared.sequences)
  return await reported(prepared, split(prepared.sequences, logProbs), options)
}

/**
 * Computes a loss and adds its gradient.
 *
 * @param scale factor of each datum. Default 1: a sum
 */
export async function learn(
  policy: Trainable,
  prepared: Prepared,
  options: CallOptions,
  scale: readonly number[] = prepared.data.map(() => 1),
): Promise<TrainingResult> {
  const { loss, config, sequences, name } = prepared
  const pace = new Pace(undefined, options.owner)
  const truncated = name === "importance_sampling" && options.departures.has("truncated-importance")
  if (loss.bounds && !truncated) {
    const [low, high] = loss.bounds(config)
    const credit = await pace.through(credited(prepared, scale))
    const report = await policy.forwardBackward(credit, { ...surrogate, clipLow: 1 - low, clipHigh: high - 1 })
    return await reported(prepared, split(sequences, report.logProbs!), options)
  }
  // Only the derivatives of a cross-entropy do not depend on the log-probabilities.
  const before = name === "cross_entropy" ? undefined : split(sequences, (await policy.logProbs(sequences)).logProbs)
  const derivative = truncated
    ? ({ lp, q, A }: Token) => -Math.min(Math.exp(lp - q), 2) * A
    : (token: Token) => loss.of(token, config)[1]
  const coefficients = await pace.through(derivatives(prepared, scale, before, derivative))
  const linear: LinearLoss = { kind: "linear", coefficients }
  const report = await policy.forwardBackward(sequences, linear)
  return await reported(prepared, before ?? split(sequences, report.logProbs!), options)
}

/** Returns sequences with the inputs of the native loss. */
function* credited({ sequences, data }: Prepared, scale: readonly number[]): Pieces<Sequence[]> {
  const found: Sequence[] = []
  for (const [r, row] of sequences.entries()) {
    yield
    const { inputs } = data[r]!
    const advantage = (inputs.get("advantages") as Float32Array).map((value) => scale[r]! * value)
    const logProbs = inputs.get("logprobs") as Float32Array
    found.push({ ...row, segments: row.segments.map((segment) => ({ ...segment, logProbs, advantage })) })
  }
  return found
}

/** Returns the derivatives of all targets of all data. */
function* derivatives(
  { data }: Prepared,
  scale: readonly number[],
  logProbs: readonly Float32Array[] | undefined,
  of: (token: Token) => number,
): Pieces<Float32Array> {
  const found = new Float32Array(data.reduce((sum, { tokens }) => sum + tokens.length, 0))
  let at = 0
  for (const [r, datum] of data.entries()) {
    yield
    for (const token of tokensOf(datum, logProbs?.[r])) found[at++] = scale[r]! * of(token)
  }
  return found
}

const surrogate: Omit<ClippedSurrogate, "clipLow" | "clipHigh"> = {
  kind: "clipped-surrogate",
  clipDual: Number.POSITIVE_INFINITY,
  importanceSamplingLevel: "token",
  klWeight: 0,
  klEstimator: "k3",
  entropyWeight: 0,
  aggregation: "token-sum",
  skipZeroAdvantage: false,
}

async function reported(
  prepared: Prepared,
  logProbs: readonly Float32Array[],
  { departures, owner }: CallOptions,
): Promise<TrainingResult> {
  if (departures.has("no-metrics")) return { logProbs, metrics: {} }
  return { logProbs, metrics: { "loss:sum": await new Pace(undefined, owner).through(sumOf(prepared, logProbs)) } }
}

function* sumOf({ loss, config, data }: Prepared, logProbs: readonly Float32Array[]): Pieces<number> {
  let sum = 0
  for (const [r, datum] of data.entries()) {
    yield
    for (const token of tokensOf(datum, logProbs[r])) sum += loss.of(token, config)[0]
  }
  return sum
}

/** Returns the inputs of a loss for each target. */
function* tokensOf({ tokens, inputs }: Datum, logProbs: Float32Array | undefined): Generator<Token> {
  const [q, A, w] = ["logprobs", "advantages", "weights"].map((name) => inputs.get(name))
  for (let i = 0; i < tokens.length; i++)
    yield { lp: logProbs?.[i] ?? 0, q: q?.[i] ?? 0, A: A?.[i] ?? 0, w: w?.[i] ?? 0 }
}

/** Returns the factors of data for a mean of means. */
export function meanScales({ data, name }: Prepared, total: number, departures: Departures): number[] {
  return data.map(({ inputs, tokens }) => {
    const weights = inputs.get("weights") as Float32Array | undefined
    const sum = weights?.reduce((a, b) => a + b, 0) ?? tokens.length
    const divisor = name === "cross_entropy" && departures.has("negative-weights") ? Math.max(sum, 1e-9) : sum || 1
    return 1 / (divisor * total)
  })
}

/** Multiplies weights into advantages, because in a mean they count in every loss. */
export function weighed(prepared: Prepared): Prepared {
  if (prepared.name === "cross_entropy") return prepared
  const data = prepared.data.map(({ tokens, inputs }) => {
    const weights = inputs.get("weights")
    if (!weights) return { tokens, inputs }
    const advantages = (inputs.get("advantages") as Float32Array).map((value, i) => value * weights[i]!)
    return { tokens, inputs: new Map(inputs).set("advantages", advantages) }
  })
  return { ...prepared, data }
}

function split(rows: readonly Sequence[], values: Float32Array): Float32Array[] {
  let end = 0
  return rows.map(({ segments }) => {
    const start = end
    end += segments[0]!.length
    return values.slice(start, end)
  })
}
