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

export type Wire = "protobuf" | "json"

/** What one call may hold: the API's limits. */
const mostData = 1024
const mostBytes = 5_000_000
/** Bytes of an answer for each token: columns of numbers, in JSON at that. */
const bytesPerToken = 128

/** Takes a batch in as many calls as its size needs: gradients add up. Results come in the order of the data. */
export async function trainOn(
  model: RemoteModel,
  { loss, config, data }: RemoteLoss,
  wire: Wire,
  options: { readonly forwardOnly?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<TrainingResult> {
  const { forwardOnly = false, signal } = options
  const results: (() => Promise<TrainingResult>)[] = []
  for (const part of parts(data)) {
    const { path, asked } = requestOf({ loss, config, data: part }, wire, forwardOnly)
    const most = shortAnswer + bytesPerToken * part.reduce((sum, { tokens }) => sum + tokens.length, 0)
    const { result } = await model.submit(path, asked, { protobuf: wire === "protobuf", most, signal })
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

/** One log-probability a token; servers that learn may leave them out. */
function checkLengths({ logProbs }: TrainingResult, data: readonly Datum[], forwardOnly: boolean): void {
  if (logProbs.length !== data.length)
    throw new GigpoError("ENGINE_REFUSED", `The engine answered ${data.length} data with ${logProbs.length}.`)
  for (const [i, { length }] of logProbs.entries()) {
    const tokens = data[i]!.tokens.length
    if (length === tokens || (length === 0 && !forwardOnly)) continue
    throw new GigpoError("ENGINE_REFUSED", `The engine answered a datum of ${tokens} tokens with ${length} numbers.`)
  }
}

/** One call, by whatever number it gets. */
export function requestOf(
  { loss, config, data }: RemoteLoss,
  wire: Wire,
  forwardOnly: boolean,
): { readonly path: string; readonly asked: (modelId: string, seqId: number) => Uint8Array | object } {
  const encode: (call: TrainingCall) => Uint8Array | object = wire === "json" ? callToJson : encodeCall
  return {
    path: wire === "json" && forwardOnly ? "/forward" : "/forward_backward",
    asked: (modelId, seqId) => encode({ modelId, seqId, data, loss, config, forwardOnly }),
  }
}

/** Metrics of parts that are sums. */
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

/** One step of AdamW: what the server tells of it. */
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

/** A step that changes no weights: it tells the norm of the gradient, and forgets it. */
export const still: CompleteStep = {
  learningRate: 0,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: Number.POSITIVE_INFINITY,
}
