import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { GigpoError } from "../util/errors.ts"
import { checkSamplingTemperature, checkTokens, checkWhole } from "./check-arguments.ts"
import type { SampleRequest } from "./engine.ts"

const requestKeys: KeysOf<SampleRequest> = {
  prompt: true,
  attachments: true,
  maxTokens: true,
  temperature: true,
  stopTokens: true,
  key: true,
  constraint: true,
  onTokens: true,
  topTokens: true,
  client: true,
  group: true,
  signal: true,
}

/** Maximum of `SampleRequest.topTokens`. */
export const mostTopTokens = 20

/** Checks a sampling request, independent of the engine. Throws `BAD_ARGUMENT`. */
export function checkRequest(request: SampleRequest, vocabularySize: number): void {
  if (typeof request !== "object" || request === null)
    throw bad("sample() needs a request: { prompt, maxTokens, stopTokens, key }")
  checkArguments("sample", request, requestKeys)
  const { prompt, maxTokens, temperature = 1, stopTokens, key, onTokens, topTokens = 0, client = 0 } = request
  const { group = client } = request
  checkTokens(prompt, "prompt", vocabularySize)
  checkSamplingTemperature(temperature)
  checkWhole(maxTokens, "maxTokens")
  if (!Array.isArray(stopTokens) || !stopTokens.every(Number.isSafeInteger))
    throw bad("stopTokens must be a list of token ids; give [] for none")
  if (onTokens !== undefined && typeof onTokens !== "function")
    throw bad("onTokens must be a function that receives the sampled tokens")
  if (!(Number.isInteger(topTokens) && topTokens >= 0 && topTokens <= mostTopTokens))
    throw bad(`topTokens is ${topTokens}; it must be an integer from 0 to ${mostTopTokens}`)
  for (const [name, value] of Object.entries({ client, group }))
    if (!(Number.isSafeInteger(value) && value >= 0))
      throw bad(`${name} is ${value}; it must be an integer of at least 0`)
  if (!Array.isArray(key) || key.length !== 2 || !key.every(Number.isSafeInteger))
    throw bad("key must be two 32-bit integers, the key of the completion's random numbers: random.derive(…).key")
}

function bad(sentence: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${sentence}.`)
}
