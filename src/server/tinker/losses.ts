import type { ClippedSurrogate, LinearLoss, Trainable } from "../../engine/engine.ts"
import type { Row } from "../../engine/rows.ts"
import type { Datum } from "../../tinker/datum.ts"
import type { TrainingResult } from "../../tinker/results.ts"
import type { TrainingCall } from "../../tinker/training-call.ts"
import { ApiError } from "../api-error.ts"
import type { Departures } from "./departures.ts"

// The API's losses, as sums over all tokens of all data: r = exp(lp - q), A = advantages, q = logprobs.

interface Loss {
  readonly inputs: readonly string[]
  /** With their defaults. */
  readonly config: Readonly<Record<string, number>>
  /** Of one target: the loss, and its derivative by lp. */
  readonly of: (token: Token, config: Readonly<Record<string, number>>) => readonly [loss: number, derivative: number]
  /** Where the engine's kernel has it: the bounds of the ratio. */
  readonly bounds?: (config: Readonly<Record<string, number>>) => readonly [low: number, high: number]
}
interface Token {
  readonly lp: number
  readonly q: number
  readonly A: number
  readonly w: number
}

const credited = ["target_tokens", "logprobs", "advantages"]
const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high)
/** Beyond any ratio that there is. */
const unbounded = 1e30

const importance: Loss = {
  inputs: credited,
  config: {},
  of: ({ lp, q, A }) => [-Math.exp(lp - q) * A, -Math.exp(lp - q) * A],
  bounds: () => [-unbounded, unbounded],
}

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
    inputs: credited,
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
    inputs: credited,
    config: { clip_low_threshold: 0, clip_high_threshold: 4 },
    of: ({ lp, q, A }, { clip_low_threshold: low, clip_high_threshold: high }) => {
      const r = clamp(Math.exp(lp - q), low!, high!)
      return [-r * lp * A, -r * A]
    },
  },
  // -Σ (lp A - β/2 (lp - q)²)
  dro: {
    inputs: credited,
    config: { beta: 0.05 },
    of: ({ lp, q, A }, { beta }) => [-(lp * A - (beta! / 2) * (lp - q) ** 2), -(A - beta! * (lp - q))],
  },
}

/** A call that was checked: rows with a span over all their targets. */
export interface Prepared {
  readonly name: string
  readonly loss: Loss
  readonly config: Readonly<Record<string, number>>
  readonly rows: readonly Row[]
  readonly data: readonly Datum[]
}

/** @throws ApiError 422 for a loss, an input or a setting that is unknown; 400 for data that cannot be learned from. */
export function prepare(
  { loss: named, config: given, data }: TrainingCall,
  departures: Departures,
  vocabularySize: number,
): Prepared {
  const silent = departures.has("silent-cross-entropy") && (named === "ppo" || named === "cispo")
  const loss = losses[named]
  if (!loss || (named === "dro" && departures.has("no-dro")))
    throw new ApiError(422, `There is no loss ${JSON.stringify(named)}; known: ${Object.keys(losses).join(", ")}.`)
  if (data.length === 0) throw new ApiError(400, "There are no data.")
  for (const [key, value] of Object.entries(given))
    if (!Object.hasOwn(loss.config, key) || typeof value !== "number" || !Number.isFinite(value))
      throw new ApiError(
        422,
        `${named} takes no ${key} = ${JSON.stringify(value)}; it takes ${Object.keys(loss.config).join(", ") || "none"}.`,
      )
  const config = { ...loss.config, ...(given as Readonly<Record<string, number>>) }
  const allowed = departures.has("mean-of-means") ? [...loss.inputs, "weights"] : loss.inputs
  const rows = data.map((datum, index) => {
    const strange = [...datum.inputs.keys()].find((name) => !allowed.includes(name))
    if (strange !== undefined)
      throw new ApiError(422, `data[${index}]: ${named} takes no ${strange}; it takes ${allowed.join(", ")}.`)
    return rowOf(datum, index, loss.inputs, vocabularySize)
  })
  return { name: silent ? "cross_entropy" : named, loss: silent ? losses.cross_entropy! : loss, config, rows, data }
}

function rowOf({ tokens, inputs }: Datum, index: number, needed: readonly string[], vocabularySize: number): Row {
  const bad = (what: string) => new ApiError(400, `data[${index}]: ${what}.`)
  for (const name of needed) if (name !== "weights" && !inputs.has(name)) throw bad(`${name} is missing`)
  const targets = inputs.get("target_tokens") as Int32Array
  if (tokens.length === 0) throw bad("it has no tokens")
  for (let i = 0; i < targets.length; i++) {
    if (targets[i]! < 0 || targets[i]! >= vocabularySize)
      throw bad(`token ${targets[i]} is not in the vocabulary of ${vocabularySize}`)
    if (i + 1 < tokens.length && targets[i] !== tokens[i + 1])
      throw bad("target_tokens are not the tokens that come next, and nothing else can be learned here")
  }
  for (const values of inputs.values()) if (!values.every(Number.isFinite)) throw bad("a number is not finite")
  const row = new Int32Array(tokens.length + 1)
  row.set(tokens)
  row[tokens.length] = targets.at(-1)!
  return { tokens: row, spans: [{ start: 1, length: tokens.length }] }
}

/** Log-probabilities of all targets; nothing is learned. */
export async function score(policy: Trainable, prepared: Prepared, departures: Departures): Promise<TrainingResult> {
  const found = await policy.logProbs(prepared.rows)
  return told(
    prepared,
    found.map(({ logProbs }) => logProbs),
    departures,
  )
}

/**
 * Adds the gradient.
 *
 * @param scale of each datum; default 1: a sum
 */
export async function learn(
  policy: Trainable,
  prepared: Prepared,
  departures: Departures,
  scale: readonly number[] = prepared.data.map(() => 1),
): Promise<TrainingResult> {
  const { loss, config, rows, data, name } = prepared
  const truncated = name === "importance_sampling" && departures.has("truncated-importance")
  if (loss.bounds && !truncated) {
    const [low, high] = loss.bounds(config)
    const credit = rows.map((row, r): Row => {
      const { inputs } = data[r]!
      const advantage = (inputs.get("advantages") as Float32Array).map((value) => scale[r]! * value)
      return {
        ...row,
        spans: row.spans.map((span) => ({ ...span, logProbs: inputs.get("logprobs") as Float32Array, advantage })),
      }
    })
    const report = await policy.forwardBackward(credit, { ...surrogate, clipLow: 1 - low, clipHigh: high - 1 })
    return told(prepared, split(rows, report.logProbs!), departures)
  }
  // Only a cross-entropy needs no log-probabilities to know its derivatives.
  const before = name === "cross_entropy" ? undefined : (await policy.logProbs(rows)).map(({ logProbs }) => logProbs)
  const derivatives = data.map(({ inputs, tokens }, r) =>
    Float32Array.from(tokens, (_, i) => {
      const token = tokenAt(inputs, i, before ? before[r]![i]! : 0)
      const derivative = truncated ? -Math.min(Math.exp(token.lp - token.q), 2) * token.A : loss.of(token, config)[1]
      return scale[r]! * derivative
    }),
  )
  const coefficients = Float32Array.from(derivatives.flatMap((values) => Array.from(values)))
  const linear: LinearLoss = { kind: "linear", coefficients }
  const report = await policy.forwardBackward(rows, linear)
  return told(prepared, before ?? split(rows, report.logProbs!), departures)
}

const surrogate: Omit<ClippedSurrogate, "clipLow" | "clipHigh"> = {
  kind: "clipped-surrogate",
  clipDual: Number.POSITIVE_INFINITY,
  ratio: "token",
  klWeight: 0,
  klEstimator: "k3",
  entropyWeight: 0,
  aggregation: "token-sum",
  skipZeroAdvantage: false,
}

function told(
  { loss, config, data }: Prepared,
  logProbs: readonly Float32Array[],
  departures: Departures,
): TrainingResult {
  let sum = 0
  for (const [r, { inputs, tokens }] of data.entries())
    for (let i = 0; i < tokens.length; i++) sum += loss.of(tokenAt(inputs, i, logProbs[r]![i]!), config)[0]
  return { logProbs, metrics: departures.has("no-metrics") ? {} : { "loss:sum": sum } }
}

const tokenAt = (inputs: Datum["inputs"], i: number, lp: number): Token => ({
  lp,
  q: inputs.get("logprobs")?.[i] ?? 0,
  A: inputs.get("advantages")?.[i] ?? 0,
  w: inputs.get("weights")?.[i] ?? 0,
})

/** What each datum's losses are divided by, where a server takes means. */
export function meanScales({ data, name }: Prepared, total: number, departures: Departures): number[] {
  return data.map(({ inputs, tokens }) => {
    const weights = inputs.get("weights") as Float32Array | undefined
    const sum = weights?.reduce((a, b) => a + b, 0) ?? tokens.length
    const divisor = name === "cross_entropy" && departures.has("negative-weights") ? Math.max(sum, 1e-9) : sum || 1
    return 1 / (divisor * total)
  })
}

/** In a mean, weights count in every loss. */
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

function split(rows: readonly Row[], values: Float32Array): Float32Array[] {
  let end = 0
  return rows.map(({ spans }) => {
    const start = end
    end += spans[0]!.length
    return values.slice(start, end)
  })
}
