import type { Datum } from "../../tinker/datum.ts"
import { decodeTraining, type TrainingResult, trainingFromJson } from "../../tinker/results.ts"
import { callToJson, encodeCall, type TrainingCall } from "../../tinker/training-call.ts"
import { GigpoError } from "../../util/errors.ts"
import type { CompleteStep } from "../complete-step.ts"
import { shortAnswer } from "./connection.ts"
import type { RemoteLoss } from "./data.ts"
import { understood } from "./refused.ts"
import type { RemoteModel } from "./remote-model.ts"

// Gradients and optimizer steps of a model on the server.

/** Encoding of training requests. */
export type Wire = "protobuf" | "json"

/** Limits of the API for one call: data, and bytes of the request. */
const mostData = 1024
const mostBytes = 5_000_000
/** Maximum bytes of a response per token: columns of numbers in JSON. */
const bytesPerToken = 128

/** Computes the gradient of a batch in as many calls as its size needs. Results are in the order of the data. */
export async function trainOn(
  model: RemoteModel,
  { loss, config, data }: RemoteLoss,
  wire: Wire,
  options: { readonly forwardOnly?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<TrainingResult> {
  const { forwardOnly = false, signal } = options
  const results: (() => Promise<TrainingResult>)[] = []
  for (const part of parts(data)) {
    const { path, request } = requestOf({ loss, config, data: part }, wire, forwardOnly)
    const most = shortAnswer + bytesPerToken * part.reduce((sum, { tokens }) => sum + tokens.length, 0)
    const { result } = await model.submit(path, request, { protobuf: wire === "protobuf", most, signal })
    results.push(async () => {
      const { body, bytes } = await result()
      const count = part.length
      const found = understood(path, () => (bytes ? decodeTraining(bytes, count) : trainingFromJson(body, count)))
      checkLengths(found, part, forwardOnly)
      return found
    })
  }
  const all = await Promise.all(results.map((result) => result()))
  return { logProbs: all.flatMap((result) => result.logProbs), metrics: added(all.map(({ metrics }) => metrics)) }
}

/** Checks that there is one log-probability per token. Servers may omit them for a backward pass. */
function checkLengths({ logProbs }: TrainingResult, data: readonly Datum[], forwardOnly: boolean): void {
  if (logProbs.length !== data.length)
    throw new GigpoError("ENGINE_REJECTED", `The engine returned ${logProbs.length} results for ${data.length} data.`)
  for (const [i, { length }] of logProbs.entries()) {
    const tokens = data[i]!.tokens.length
    if (length === tokens || (length === 0 && !forwardOnly)) continue
    throw new GigpoError(
      "ENGINE_REJECTED",
      `The engine returned ${length} log-probabilities for a datum of ${tokens} tokens.`,
    )
  }
}

/** Returns path and encoder of one call. */
export function requestOf(
  { loss, config, data }: RemoteLoss,
  wire: Wire,
  forwardOnly: boolean,
): { readonly path: string; readonly request: (modelId: string, seqId: number) => Uint8Array | object } {
  const encode: (call: TrainingCall) => Uint8Array | object = wire === "json" ? callToJson : encodeCall
  return {
    path: wire === "json" && forwardOnly ? "/forward" : "/forward_backward",
    request: (modelId, seqId) => encode({ modelId, seqId, data, loss, config, forwardOnly }),
  }
}

/** Adds the metrics of several calls. Only sums can be added. */
function added(all: readonly TrainingResult["metrics"][]): TrainingResult["metrics"] {
  if (all.length === 1) return all[0]!
  const names = Object.keys(all[0] ?? {}).filter((name) => name.endsWith(":sum"))
  return Object.fromEntries(
    names.map((name) => [name, all.reduce((sum, metrics) => sum + (metrics[name] ?? Number.NaN), 0)]),
  )
}

function* parts(data: readonly Datum[]): Generator<readonly Datum[]> {
  let [part, size] = [[] as Datum[], 0]
  for (const datum of data) {
    const bytes = 4 * datum.tokens.length + [...datum.inputs.values()].reduce((sum, { length }) => sum + 8 * length, 0)
    if (part.length > 0 && (part.length >= mostData || size + bytes > mostBytes)) {
      yield part
      ;[part, size] = [[], 0]
    }
    part.push(datum)
    size += bytes
  }
  if (part.length > 0) yield part
}

/** Takes one AdamW step. Returns what the server reports. */
export async function stepOf(
  model: RemoteModel,
  { learningRate, beta1, beta2, epsilon, weightDecay, maxGradientNorm }: CompleteStep,
): Promise<{ readonly gradientNorm: number; readonly skipped: boolean }> {
  const adam_params = {
    learning_rate: learningRate,
    beta1,
    beta2,
    eps: epsilon,
    weight_decay: weightDecay,
    grad_clip_norm: Number.isFinite(maxGradientNorm) ? maxGradientNorm : 0,
  }
  const { body } = await model.call("/optim_step", { adam_params, type: "optim_step" })
  const metrics = ((body as { metrics?: unknown })?.metrics ?? {}) as Readonly<Record<string, unknown>>
  const [, norm = Number.NaN] = Object.entries(metrics).find(([name]) => /(^|\W)grad_norm\b/.test(name)) ?? []
  const gradientNorm = typeof norm === "number" ? norm : Number.NaN
  return { gradientNorm, skipped: metrics["skipped:max"] === 1 }
}

/** Step with learning rate 0: reports the gradient norm and clears the gradient without changing weights. */
export const still: CompleteStep = {
  learningRate: 0,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: Number.POSITIVE_INFINITY,
}
