import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type {
  AdamWParameters,
  ClippedSurrogate,
  CrossEntropy,
  LogProbsOptions,
  LossReport,
} from "../../src/engine/engine.ts"
import type { NativePolicy } from "../../src/engine/native/native-policy.ts"
import { type SegmentAdvantages, type Sequence, stepSequence } from "../../src/engine/sequence.ts"
import { clippedSurrogate } from "../../src/loss/clipped-surrogate.ts"
import { Random } from "../../src/util/random.ts"
import { columnByRow } from "./by-row.ts"

// The tiny models of test/fixtures and what transformers computes with them; see the README there.

export interface Expected {
  readonly logits: readonly Int32Array[]
  readonly policy: readonly PolicyCase[]
  readonly greedy: readonly { prompt: Int32Array; completion: number[]; logProbs: number[] }[]
  readonly adamw: {
    readonly step: AdamWParameters
    readonly rows: readonly Sequence[]
    readonly losses: readonly number[]
    readonly gradientNorms: readonly number[]
  }
  /** Of expected.safetensors, by name. */
  readonly tensors: ReadonlyMap<string, Float32Array>
}

export interface PolicyCase {
  readonly loss: ClippedSurrogate
  readonly rows: readonly Sequence[]
  readonly logProbs: readonly number[][]
  readonly entropy: readonly number[][]
  readonly report: LossReport
}

/** Every model with a full set of expected values. */
export const architectures = ["qwen2", "qwen2-untied", "qwen3", "llama"] as const

/** Every model of test/fixtures/architectures. */
export const architectureKinds = [
  "yarn",
  "yarn-mscale",
  "mistral",
  "qwen2-windows",
  "qwen3-windows",
  "smollm3",
  "smollm3-windows",
  "gemma3",
  "gemma3-yarn",
] as const

export function architecturePath(name: string): string {
  return fileURLToPath(new URL(`../fixtures/architectures/${name}`, import.meta.url))
}

export function modelPath(name: string): string {
  return fileURLToPath(new URL(`../fixtures/models/${name}`, import.meta.url))
}

/** Adapters that PEFT made beside the models of the same names. */
export const adapters = ["qwen2-untied", "qwen3"] as const

export function adapterPath(name: string): string {
  return fileURLToPath(new URL(`../fixtures/adapters/${name}`, import.meta.url))
}

export function readExpected(name: string, folder: string = modelPath(name)): Expected {
  const json = JSON.parse(readFileSync(`${folder}/expected.json`, "utf8"))
  return {
    logits: json.logits.rows.map((row: number[]) => Int32Array.from(row)),
    policy: (json.policy ?? []).map((one: JsonCase) => ({
      ...one,
      loss: surrogate({ ...one.loss, kind: "clipped-surrogate" }),
      rows: one.rows.map(toRow),
      report: toReport(one.report),
    })),
    greedy: (json.greedy ?? []).map((one: { prompt: number[] }) => ({ ...one, prompt: Int32Array.from(one.prompt) })),
    adamw: json.adamw && { ...json.adamw, rows: json.adamw.rows.map(toRow) },
    tensors: readTensors(`${folder}/expected.safetensors`),
  }
}

interface JsonCase {
  loss: object
  rows: JsonRow[]
  report: Record<
    "loss" | "tokens" | "entropy" | "clipFraction" | "dualClipFraction" | "kl" | "policyKl" | "ratio",
    number
  >
}

function toReport(report: JsonCase["report"]): LossReport {
  const metrics = {
    "loss/kl": report.kl,
    "policy/entropy": report.entropy,
    "policy/clip-fraction": report.clipFraction,
    "policy/dual-clip-fraction": report.dualClipFraction,
    "policy/kl": report.policyKl,
    "policy/ratio": report.ratio,
  }
  return { loss: report.loss, tokens: report.tokens, metrics }
}

interface JsonRow {
  prompt: number[]
  completion: number[]
  advantage?: number
  logProbs?: number[]
  referenceLogProbs?: number[]
}

function toRow({ prompt, completion, advantage, logProbs, referenceLogProbs }: JsonRow): Sequence {
  return stepSequence(Int32Array.from(prompt), Int32Array.from(completion), {
    ...(advantage !== undefined && { advantage }),
    ...(logProbs && { logProbs: Float32Array.from(logProbs) }),
    ...(referenceLogProbs && { referenceLogProbs: Float32Array.from(referenceLogProbs) }),
  })
}

/** The clipped surrogate with the defaults of its options. */
export function surrogate(options: Partial<ClippedSurrogate> = {}): ClippedSurrogate {
  const defaults = clippedSurrogate({ skipZeroAdvantage: false }).native!({ iteration: 0, iterations: 1 })
  return { ...(defaults as ClippedSurrogate), ...options }
}

export const crossEntropy: CrossEntropy = { kind: "cross-entropy" }

/** A step's prompt and reply. */
export function partsOf({ tokens, segments }: Sequence): { prompt: Int32Array; completion: Int32Array } {
  const { start, length } = segments[0]!
  return { prompt: tokens.slice(0, start), completion: tokens.slice(start, start + length) }
}

/** A step with other credit. */
export function credited(row: Sequence, credit: SegmentAdvantages): Sequence {
  return { ...row, segments: [{ ...row.segments[0]!, ...credit }] }
}

/** Rows of a rollout with random returns and earlier values, to train a critic on. */
export async function rowsForCritic(policy: NativePolicy): Promise<Sequence[]> {
  const random = new Random(3)
  const numbers = (length: number) => Float32Array.from({ length }, () => 2 * random.uniform() - 1)
  return (await rolloutRows(policy, new Random(4))).map((row) => {
    const { length } = row.segments[0]!
    return credited(row, { returns: numbers(length), values: numbers(length) })
  })
}

/** Log-probabilities alone, one array a row. */
export async function logProbsOf(
  policy: NativePolicy,
  rows: readonly Sequence[],
  options: LogProbsOptions = {},
): Promise<Float32Array[]> {
  return columnByRow(rows, (await policy.logProbs(rows, options)).logProbs)
}

export function join(parts: readonly ArrayLike<number>[]): Float32Array {
  return Float32Array.from(parts.flatMap((part) => Array.from(part)))
}

/** Header length, header, float32 data; written on its own here, so that a fault of the package's reader shows. */
export function readTensors(path: string): Map<string, Float32Array> {
  const bytes = readFileSync(path)
  const start = 8 + Number(bytes.readBigUInt64LE(0))
  const header = JSON.parse(bytes.toString("utf8", 8, start)) as Record<string, { data_offsets?: [number, number] }>
  const tensors = new Map<string, Float32Array>()
  for (const [name, { data_offsets: offsets }] of Object.entries(header)) {
    if (!offsets) continue
    const data = bytes.buffer.slice(bytes.byteOffset + start + offsets[0], bytes.byteOffset + start + offsets[1])
    tensors.set(name, new Float32Array(data as ArrayBuffer))
  }
  return tensors
}

/** Largest difference, as a share of the largest expected number. NaN, and never less than it, where a number is NaN. */
export function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Number.NaN
  let [difference, scale] = [0, 0]
  for (let i = 0; i < expected.length; i++) {
    difference = Math.max(difference, Math.abs(actual[i]! - expected[i]!))
    scale = Math.max(scale, Math.abs(expected[i]!))
  }
  return difference / scale
}

/** Names of the weights, as the policy's files have them. */
/** By the Euclidean norm: single elements of bf16 are off by chance. */
export function normError(found: ArrayLike<number>, truth: ArrayLike<number>): number {
  let [difference, norm] = [0, 0]
  for (let i = 0; i < truth.length; i++) {
    difference += (found[i]! - truth[i]!) ** 2
    norm += truth[i]! ** 2
  }
  return Math.sqrt(difference / norm)
}

/** Of all of the fixture's rows. */
export async function allLogits(policy: NativePolicy, expected: Expected): Promise<number[]> {
  const logits: number[] = []
  for (const row of expected.logits) logits.push(...(await policy.logits(row)))
  return logits
}

export function weightNames(expected: Expected): string[] {
  return [...expected.tensors.keys()].filter((name) => name.startsWith("adamw.")).map((name) => name.slice(6))
}

/** All gradients by name. */
export async function gradients(policy: NativePolicy, names: readonly string[]): Promise<Map<string, Float32Array>> {
  const found = new Map<string, Float32Array>()
  for (const name of names) found.set(name, await policy.tensor(name, "gradients"))
  return found
}

/** Tokens of the fixtures' vocabulary of 67. */
export function randomTokens(count: number, random: Random): Int32Array {
  return Int32Array.from({ length: count }, () => random.below(67))
}

/**
 * Rows as a rollout leaves them: random tokens of six lengths, advantages of both signs, and log-probabilities of policies that
 * were a little, or a lot, different. No ratio lies so near a bound that rounding could move it across.
 */
export async function rolloutRows(policy: NativePolicy, random: Random, temperature = 1): Promise<Sequence[]> {
  const rows = [1, 2, 5, 9, 14, 30].map((length) =>
    stepSequence(randomTokens(length + 3, random), randomTokens(length, random)),
  )
  const current = await logProbsOf(policy, rows, { temperature })
  const ratios = [0.4, 0.7, 0.9, 1, 1.1, 1.5, 2.5, 4]
  return rows.map((row, index) =>
    credited(row, {
      advantage: [1.5, -0.75, 0.5, -1.25, 0, 2][index]!,
      logProbs: current[index]!.map((value) => value - Math.log(ratios[random.below(ratios.length)]!)),
      referenceLogProbs: current[index]!.map((value) => value + random.uniform() - 0.5),
    }),
  )
}
