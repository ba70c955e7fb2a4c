import { ApiError } from "../chat/api-error.ts"
import type { FieldReader } from "../chat/fields.ts"
import { promptFromJson } from "../tinker/datum.ts"
import { mostSamples, mostStops } from "../tinker/limits.ts"
import { GigpoError } from "../util/errors.ts"
import type { AdamParams } from "./served-model.ts"
import type { Draw } from "./served-samplers.ts"

/** Maximum bytes of the response to a sampling request: 4,096 samples of 2,048 tokens with log-probabilities. */
const mostAnswered = 2 ** 26
const bytesPerToken = 8
/** Bytes of each most likely token, which is an object until it is encoded. */
const bytesPerTop = 64

/** Reads adam_params with defaults. Throws `ApiError` 400 and 422. */
export function readAdam(given: unknown): AdamParams {
  const defaults = { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 }
  if (typeof given !== "object" || given === null) throw new ApiError(400, "adam_params must be an object.")
  const params = given as Readonly<Record<string, unknown>>
  if (params.type !== undefined && params.type !== "adamw")
    throw new ApiError(422, `The optimizer ${quoted(params.type)} is not supported; use "adamw".`)
  const read = (name: keyof typeof defaults) => {
    const value = Object.hasOwn(params, name) ? params[name] : defaults[name]
    if (typeof value === "number" && value >= 0 && Number.isFinite(value)) return value
    throw new ApiError(400, `adam_params.${name} must be a number of at least 0.`)
  }
  const names = Object.keys(defaults) as (keyof typeof defaults)[]
  return Object.fromEntries(names.map((name) => [name, read(name)])) as unknown as AdamParams
}

const quoted = (value: unknown) => (typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : typeof value)

/** Reads the fields of /asample. Throws `ApiError` 400. */
export function readDraw(
  fields: FieldReader,
  { maxPositions, stopTokens }: { readonly maxPositions: number; readonly stopTokens: readonly number[] },
): Draw {
  const prompt = orBad("prompt", () => promptFromJson(fields.any("prompt"), maxPositions))
  if (prompt.length < 1) throw new ApiError(400, `prompt has no tokens; it must have from 1 to ${maxPositions}.`)
  const params = fields.any("sampling_params") ?? {}
  const {
    max_tokens,
    seed,
    stop,
    temperature = 1,
    top_k = -1,
    top_p = 1,
    key,
  } = params as Readonly<Record<string, unknown>>
  const bad = (what: string) => new ApiError(400, `sampling_params.${what}.`)
  const whole = (value: unknown, least: number) => Number.isSafeInteger(value) && (value as number) >= least
  if ((top_k !== -1 && top_k !== null) || top_p !== 1)
    throw bad("top_k and top_p are not supported, since sampling must follow the trained distribution: remove them")
  if (max_tokens !== undefined && max_tokens !== null && !whole(max_tokens, 1))
    throw bad("max_tokens must be an integer of at least 1")
  if (typeof temperature !== "number" || !(temperature >= 0)) throw bad("temperature must be a number of at least 0")
  if (seed !== undefined && seed !== null && !Number.isSafeInteger(seed)) throw bad("seed must be an integer")
  const isWord = (word: unknown) => whole(word, 0) && (word as number) < 2 ** 32
  if (key !== undefined && !(Array.isArray(key) && key.length === 2 && key.every(isWord)))
    throw bad("key must be two integers from 0 to 2^32 - 1")
  const samples = fields.whole("num_samples", 1, mostSamples) ?? 1
  if (key !== undefined && samples !== 1) throw bad("key applies to one sample; remove num_samples")
  if ((fields.whole("topk_prompt_logprobs", 0, 20) ?? 0) > 0)
    throw new ApiError(400, "topk_prompt_logprobs is not supported; set it to 0.")
  const maxTokens = Math.max(
    1,
    Math.min((max_tokens as number | undefined) ?? maxPositions, maxPositions - prompt.length),
  )
  const topTokens = fields.whole("topk_sample_logprobs", 0, 20) ?? 0
  if (samples * maxTokens * (bytesPerToken + bytesPerTop * topTokens) > mostAnswered)
    throw new ApiError(
      400,
      `${samples} samples of ${maxTokens} tokens exceed the maximum response of ${mostAnswered} bytes; request fewer samples, ` +
        "or set a smaller max_tokens.",
    )
  return {
    ...{ prompt, samples, temperature, maxTokens, topTokens },
    stopTokens: stop === undefined || stop === null ? stopTokens : readStops(stop),
    seed: (seed ?? undefined) as number | undefined,
    key: key as readonly [number, number] | undefined,
    promptLogProbs: fields.boolean("prompt_logprobs") ?? false,
  }
}

/** Reads the stop tokens, one list for all samples of a request. */
function readStops(given: unknown): readonly number[] {
  if (!Array.isArray(given) || !given.every((token) => Number.isInteger(token) && token >= 0 && token < 2 ** 31))
    throw new ApiError(400, "sampling_params.stop must be a list of token ids; stop texts are not supported.")
  const stops = [...new Set<number>(given)]
  if (stops.length <= mostStops) return stops
  throw new ApiError(400, `sampling_params.stop has ${stops.length} token ids; the maximum is ${mostStops}.`)
}

function orBad<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (GigpoError.is(error)) throw new ApiError(400, `${name}: ${error.message}`)
    throw error
  }
}
