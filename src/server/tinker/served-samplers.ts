import { randomInt } from "node:crypto"
import type { Completion, Sampler } from "../../engine/engine.ts"
import type { NativePolicy } from "../../engine/native/native-policy.ts"
import type { SampleResult, Top } from "../../tinker/results.ts"
import { noLogProb } from "../../tinker/results.ts"
import { ApiError } from "../api-error.ts"
import type { Departures } from "./departures.ts"
import type { ServedModel } from "./served-model.ts"

/** What a sampling session samples: a model as it was published, or weights that stay as they are. */
export type Source =
  | { readonly model: ServedModel; readonly version: number; readonly slot?: string | undefined }
  | { readonly path: string | undefined }

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

/** Policies that only sample, the last few that were asked for: the base model's, and those of saved weights. */
export class FrozenPolicies {
  readonly #open: (path: string | undefined) => Promise<NativePolicy>
  readonly #most: number
  readonly #policies = new Map<string, Promise<NativePolicy>>()

  constructor(open: (path: string | undefined) => Promise<NativePolicy>, most: number) {
    this.#open = open
    this.#most = most
  }

  async get(path: string | undefined): Promise<NativePolicy> {
    const key = path ?? ""
    const policy = this.#policies.get(key) ?? this.#open(path)
    this.#policies.delete(key)
    this.#policies.set(key, policy)
    for (const [old, unused] of this.#policies) {
      if (this.#policies.size <= this.#most) break
      this.#policies.delete(old)
      void unused.then((one) => one.dispose()).catch(() => {})
    }
    try {
      return await policy
    } catch (error) {
      this.#policies.delete(key)
      throw error
    }
  }

  async dispose(): Promise<void> {
    await Promise.allSettled([...this.#policies.values()].map(async (policy) => (await policy).dispose()))
  }
}

export async function draw(policy: NativePolicy, asked: Draw, departures: Departures): Promise<SampleResult> {
  const { prompt, samples, maxTokens, temperature, stopTokens, topTokens } = asked
  const seed = asked.seed ?? randomInt(2 ** 32)
  const one = (index: number) => {
    const key = asked.key ?? ([seed >>> 0, index] as const)
    return (policy as Sampler).sample({ prompt, maxTokens, temperature, stopTokens, key, topTokens })
  }
  const drawn = await Promise.all(Array.from({ length: samples }, (_, index) => one(index)))
  const raw = departures.has("raw-log-probs") && temperature !== 1 && temperature !== 0
  const sequences = drawn.map(async (completion) => ({
    tokens: completion.tokens,
    logProbs: raw ? await plain(policy, prompt, completion.tokens) : completion.logProbs,
    stopped: completion.finishReason === "stop",
    ...(topTokens > 0 && { top: topOf(completion, topTokens) }),
  }))
  return {
    sequences: await Promise.all(sequences),
    ...(asked.promptLogProbs && { promptLogProbs: await ofPrompt(policy, prompt, departures) }),
  }
}

/** At temperature 1. */
async function plain(policy: NativePolicy, prompt: Int32Array, reply: Int32Array): Promise<Float32Array> {
  const tokens = Int32Array.of(...prompt, ...reply)
  const [found] = await policy.logProbs([{ tokens, spans: [{ start: prompt.length, length: reply.length }] }])
  return found!.logProbs
}

async function ofPrompt(policy: NativePolicy, prompt: Int32Array, departures: Departures): Promise<Float32Array> {
  const length = prompt.length - 1
  const found =
    length > 0 ? (await policy.logProbs([{ tokens: prompt, spans: [{ start: 1, length }] }]))[0]!.logProbs : []
  return departures.has("short-prompts") ? Float32Array.from(found) : Float32Array.of(Number.NaN, ...found)
}

function topOf({ top = [], tokens }: Completion, count: number): Top {
  const cells = Array.from(tokens, (_, place) => Array.from({ length: count }, (_, i) => top[place]?.[i])).flat()
  return {
    count,
    tokens: Int32Array.from(cells, (cell) => cell?.token ?? 0),
    logProbs: Float32Array.from(cells, (cell) => cell?.logProb ?? noLogProb),
  }
}

/** @throws ApiError 400 where the weights have moved on: only what has a name stays. */
export async function policyOf(source: Source, frozen: FrozenPolicies, departures: Departures): Promise<NativePolicy> {
  if (!("model" in source)) return await frozen.get(source.path)
  const { model, version, slot } = source
  if (model.version === version) return model.policy
  if (!departures.has("shared-slot"))
    throw new ApiError(
      400,
      "The weights of this sampler have moved on since: make a new one after each optim_step, or save it under a name.",
    )
  // One that is older than the newest puts its own weights into the place that both share.
  if (slot !== undefined && slot !== model.newestSlot)
    await (model.rank > 0 ? model.policy.loadAdapter(slot) : model.policy.load(slot))
  return model.policy
}
