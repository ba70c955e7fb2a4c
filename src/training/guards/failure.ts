import { mkdir, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type { AdamWParameters, ModelStore, Trainable } from "../../engine/engine.ts"
import type { Sequence } from "../../engine/sequence.ts"
import { writeDirectory } from "../../files/atomic-directory.ts"
import { inside } from "../../files/inside.ts"
import { io } from "../../files/io-error.ts"
import { readRegular } from "../../files/regular-file.ts"
import { asTokenLoss } from "../../loss/as-token-loss.ts"
import type { TokenLoss } from "../../loss/token-loss.ts"
import { refusePromise } from "../../options/arguments.ts"
import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import type { Json } from "../../util/state.ts"
import { version } from "../../util/version.ts"
import type { AccumulateOptions } from "../accumulate.ts"
import type { ResolvedTrainOptions } from "../options.ts"
import { isNonFinite, takeStep, type UpdateResult } from "./step.ts"

// A batch whose loss or gradient was not finite, saved for a replay: batch.json, and in weights/ the engine's checkpoint from before the
// step.

const files = { batch: "batch.json", weights: "weights" } as const

export interface Failure {
  readonly policy: Trainable
  readonly loss: TokenLoss
  readonly options: ResolvedTrainOptions
  readonly rows: readonly Sequence[]
  readonly how: AccumulateOptions
  readonly adamw: AdamWParameters
  readonly error: Error
}

/** Content of batch.json. Typed arrays are written as { type, values }; NaN and infinities as strings. */
interface Batch {
  readonly version: 1
  readonly gigpo: string
  readonly error: string
  readonly loss: { readonly name: string; readonly options: unknown }
  readonly seed: number
  readonly how: Omit<AccumulateOptions, "random" | "signal"> & { readonly key: readonly [number, number] }
  readonly adamw: AdamWParameters
  /** Reference of the engine to the saved weights; null if the engine cannot be saved, or has weights that are not finite. */
  readonly weights: Json
  /** Constraints. Spans hold an index into this list. */
  readonly constraints?: readonly Written[]
  /** Vocabularies. Constraints hold an index into this list: a vocabulary takes megabytes, and most constraints share one. */
  readonly vocabularies?: readonly unknown[]
  readonly rows: readonly Sequence[]
}

/** Result of a constraint's `toJSON`. */
type Written = { readonly vocabulary?: unknown }

/** Writes failure-`iteration` into the folder of a run, replaces an earlier one, and returns the path. */
export async function writeFailure(run: string, failure: Failure): Promise<string> {
  const { policy, loss, options, rows, how, adamw, error } = failure
  const { random, signal: _, ...rest } = how
  const directory = await inside(run, `failure-${how.progress.iteration + 1}`)
  const all = rows.flatMap(({ segments }) => segments.map(({ constraint }) => constraint))
  const constraints: readonly unknown[] = [...new Set(all)].filter((constraint) => constraint !== undefined)
  const made = constraints.map((constraint) => (constraint as { toJSON(): Written }).toJSON())
  const vocabularies = [...new Set(made.map(({ vocabulary }) => vocabulary))]
  const fill = async (temporary: string): Promise<void> => {
    const batch: Batch = {
      version: 1,
      gigpo: version,
      error: error.message,
      loss: { name: loss.name, options: options.loss },
      seed: options.seed,
      how: { ...rest, key: random.key },
      adamw,
      weights: policy.store ? await keepWeights(policy.store, join(temporary, files.weights)) : null,
      constraints: made.map((one) => ({ ...one, vocabulary: vocabularies.indexOf(one.vocabulary) })),
      vocabularies,
      rows: withConstraints(rows, (constraint) => constraints.indexOf(constraint)),
    }
    await writeFile(join(temporary, files.batch), `${JSON.stringify(batch, written)}\n`)
  }
  await writeDirectory(directory, fill, { overwrite: true })
  return directory
}

function withConstraints(rows: readonly Sequence[], other: (constraint: unknown) => unknown): Sequence[] {
  return rows.map((row) => ({
    ...row,
    segments: row.segments.map((segment) =>
      segment.constraint === undefined ? segment : { ...segment, constraint: other(segment.constraint) },
    ),
  }))
}

async function keepWeights(store: ModelStore, folder: string): Promise<Json> {
  await mkdir(folder)
  try {
    return await store.checkpoint(folder)
  } catch (error) {
    if (!isNonFinite(error)) throw error
    await rm(folder, { recursive: true })
    return null
  }
}

/**
 * Replays an update whose loss or gradient was not finite: loss, gradient and optimizer step. The weights of the policy are set to those
 * before the step, if these were saved.
 *
 * @param directory - folder `failure-<iteration>` of a run.
 * @param policy - model of the same shape. Its weights and optimizer state change.
 * @param loss - loss of the training, or another loss to try.
 * @throws GigpoError `RUN_CORRUPT` for a folder without a valid batch, `BAD_ARGUMENT` for sequences that were sampled under a constraint
 * which this policy cannot read, and any error of the engine or the loss.
 */
export async function replayFailure(
  directory: string,
  policy: Trainable,
  loss: TokenLoss | TokenLoss["evaluate"],
): Promise<UpdateResult> {
  refusePromise("replayFailure: policy", policy)
  const made = asTokenLoss(loss)
  const { how, adamw, rows: written, weights, constraints = [], vocabularies = [] } = await readBatch(directory)
  if (constraints.length > 0 && !policy.readConstraint)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `Sequences of ${directory} were sampled under a constraint, which this policy cannot read; use a policy with readConstraint, such as NativePolicy.`,
    )
  const constraintsAgain = constraints.map((constraint) =>
    policy.readConstraint!({ ...constraint, vocabulary: vocabularies[constraint.vocabulary as number] }),
  )
  const rows = withConstraints(written, (number) => constraintsAgain[number as number])
  if (weights !== null && policy.store) await policy.store.restore(weights, await inside(directory, files.weights))
  const { key, ...rest } = how
  return await takeStep(policy, rows, made, { ...rest, random: new Random(key) }, adamw)
}

async function readBatch(directory: string): Promise<Batch> {
  const path = join(directory, files.batch)
  const text = await io("read", path, readRegular(path))
  let batch: Partial<Batch> | null
  try {
    batch = JSON.parse(text, read)
  } catch (cause) {
    throw corrupt(path, "it is not JSON", cause)
  }
  const { version, how, adamw, rows } = batch ?? {}
  if (version !== 1) throw corrupt(path, "this version of gigpo does not support its version")
  if (!how || !adamw || !Array.isArray(rows)) throw corrupt(path, "it must have the keys how, adamw and rows")
  return batch as Batch
}

const arrays = { Float32Array, Float64Array, Int32Array, Uint8Array }
type ArrayName = keyof typeof arrays
const notInJson: ReadonlySet<string> = new Set(["NaN", "Infinity", "-Infinity", "-0"])

function written(_: string, value: unknown): unknown {
  if (typeof value === "number") return shown(value)
  const type = (Object.keys(arrays) as ArrayName[]).find((name) => value instanceof arrays[name])
  return type ? { type, values: Array.from(value as Float32Array, shown) } : value
}

function shown(value: number): number | string {
  const text = Object.is(value, -0) ? "-0" : String(value)
  return notInJson.has(text) ? text : value
}

function read(_: string, value: unknown): unknown {
  if (typeof value === "string" && notInJson.has(value)) return Number(value)
  if (typeof value !== "object" || value === null || !("type" in value && "values" in value)) return value
  const { type, values } = value as { readonly type: ArrayName; readonly values: readonly number[] }
  return Object.hasOwn(arrays, type) ? new arrays[type](values) : value
}

function corrupt(path: string, what: string, cause?: unknown): GigpoError {
  return new GigpoError("RUN_CORRUPT", `${path} cannot be replayed: ${what}.`, { cause })
}
