import { randomInt } from "node:crypto"
import { ApiError } from "../chat/api-error.ts"
import type { Completion, Sampler } from "../engine/engine.ts"
import type { NativePolicy } from "../engine/native/native-policy.ts"
import { FairQueue } from "../http/fair-queue.ts"
import type { SampleResult, Top } from "../tinker/results.ts"
import { noLogProb } from "../tinker/results.ts"
import { joined } from "../util/joined.ts"
import { Pace } from "../util/pace.ts"
import type { Departures } from "./departures.ts"
import type { FrozenPolicies } from "./frozen-policies.ts"
import type { ServedModel } from "./served-model.ts"
import { leastRow, type Session } from "./session.ts"

/** Weights of a sampling session: a trained model at one version, saved weights, or the base model (undefined). */
export type Source =
  | { readonly model: ServedModel; readonly version: number; readonly slot?: string | undefined }
  | { readonly path: string | undefined }

/** Request for samples. */
export interface Draw {
  readonly prompt: Int32Array
  readonly samples: number
  readonly maxTokens: number
  readonly temperature: number
  readonly stopTokens: readonly number[]
  readonly seed: number | undefined
  readonly key: readonly [number, number] | undefined
  readonly promptLogProbs: boolean
  readonly topTokens: number
}

/** Options of `draw`. */
export interface DrawOptions {
  /** Session of the request. */
  readonly session: Session
  readonly departures: Departures
}

/** Queue of scoring requests: one at a time per client address. */
const scoring = new FairQueue(Number.POSITIVE_INFINITY)

/** Samples completions and, if requested, scores the prompt. */
export async function draw(
  policy: NativePolicy,
  requestedDraw: Draw,
  { session, departures }: DrawOptions,
): Promise<SampleResult> {
  const { prompt, samples, maxTokens, temperature, stopTokens, topTokens } = requestedDraw
  const { signal, client, group } = session
  const seed = requestedDraw.seed ?? randomInt(2 ** 32)
  const raw = departures.has("raw-log-probs") && temperature !== 1 && temperature !== 0
  const score = (tokens: Int32Array, start: number) =>
    session.scoring.run(1, () => scoring.take(session.address, () => logProbsFrom(policy, tokens, start, signal)))
  const one = async (index: number) => {
    const key = requestedDraw.key ?? ([seed >>> 0, index] as const)
    const request = { prompt, maxTokens, temperature, stopTokens, key, topTokens, signal, client, group }
    const completion = await (policy as Sampler).sample(request)
    const { tokens } = completion
    return {
      tokens,
      logProbs: raw ? await score(joined(Int32Array, [prompt, tokens]), prompt.length) : completion.logProbs,
      stopped: completion.finishReason === "stop",
      ...(topTokens > 0 && { top: topOf(completion, topTokens) }),
    }
  }
  const size = Math.max(prompt.length, leastRow)
  const pace = new Pace(signal, group)
  const sequences: Promise<SampleResult["sequences"][number]>[] = []
  let failed = false
  for (let index = 0; index < samples && !failed; index++) {
    // Wait for each slot in turn, so that every call has only one waiting completion.
    const giveBack = await session.rows.take(size)
    const row = one(index).finally(giveBack)
    sequences.push(row)
    row.catch(() => {
      failed = true
    })
    if (pace.due()) await pace.rest()
  }
  const promptLogProbs = requestedDraw.promptLogProbs ? await ofPrompt(prompt, score, departures) : undefined
  return { sequences: await Promise.all(sequences), ...(promptLogProbs && { promptLogProbs }) }
}

async function logProbsFrom(
  policy: NativePolicy,
  tokens: Int32Array,
  start: number,
  signal: AbortSignal,
): Promise<Float32Array> {
  const { logProbs } = await policy.logProbs([{ tokens, segments: [{ start, length: tokens.length - start }] }], {
    signal,
  })
  return logProbs
}

async function ofPrompt(
  prompt: Int32Array,
  score: (tokens: Int32Array, start: number) => Promise<Float32Array>,
  departures: Departures,
): Promise<Float32Array> {
  const found = prompt.length > 1 ? await score(prompt, 1) : new Float32Array()
  if (departures.has("short-prompts")) return found
  const all = new Float32Array(found.length + 1).fill(Number.NaN, 0, 1)
  all.set(found, 1)
  return all
}

function topOf({ top = [], tokens }: Completion, count: number): Top {
  const cells = Array.from(tokens, (_, place) => Array.from({ length: count }, (_, i) => top[place]?.[i])).flat()
  return {
    count,
    tokens: Int32Array.from(cells, (cell) => cell?.token ?? 0),
    logProbs: Float32Array.from(cells, (cell) => cell?.logProb ?? noLogProb),
  }
}

/**
 * Runs work with the policy of a source.
 *
 * @throws ApiError 400 where the model has changed since: only saved weights are kept.
 */
export async function withPolicy<T>(
  source: Source,
  frozen: FrozenPolicies,
  departures: Departures,
  work: (policy: NativePolicy) => Promise<T>,
): Promise<T> {
  if (!("model" in source)) return await frozen.using(source.path, work)
  const { model, version, slot } = source
  if (model.version === version) return await work(model.policy)
  if (!departures.has("shared-slot"))
    throw new ApiError(
      400,
      "The weights of this sampler have changed: create a new sampler after each optim_step, or save the weights under a name.",
    )
  // An older sampler overwrites the shared weights with its own.
  if (slot !== undefined && slot !== model.newestSlot)
    await (model.rank > 0 ? model.policy.loadAdapter(slot) : model.policy.load(slot))
  return await work(model.policy)
}
