import type { SampleRequest } from "../engine/engine.ts"
import { callHook } from "./call-hook.ts"
import { checkCompletion } from "./completion.ts"
import type { EpisodeSetup } from "./episode.ts"
import { orEndRollout } from "./faults.ts"
import type { SampledCompletion, TurnContext } from "./hooks.ts"
import type { PolicyChoice } from "./policy-choice.ts"
import { completionRequest, sampleCompletion } from "./sample-completion.ts"

/** Samples one completion, by `hooks.sample` or in one request. Random numbers are keyed by episode, turn, attempt and candidate. */
export async function drawCompletion<Task>(
  setup: EpisodeSetup<Task>,
  situation: TurnContext<Task>,
  { prompt, constraint }: Pick<PolicyChoice, "prompt" | "constraint">,
  attempt = 0,
  candidate = 0,
): Promise<SampledCompletion> {
  const { policy, random, maxCompletionTokens: maxTokens, hooks } = setup
  const { index, vocabularySize } = situation
  // The key of the first attempt and candidate is the same as without hooks.
  const further = [...(attempt > 0 ? [attempt] : []), ...(candidate > 0 ? ["candidate", candidate] : [])]
  const { key } = random.derive("reply", index, ...further)
  const request = {
    ...completionRequest(setup, prompt, { maxTokens, key }),
    ...(constraint !== undefined && { constraint }),
  }
  const sample = (request: SampleRequest) => sampleCompletion(policy, request)
  if (!hooks?.sample) return await orEndRollout(sample(request))
  const turn = { ...situation, attempt, request, sample }
  const check = (completion: SampledCompletion) => checkCompletion(completion, request, vocabularySize, "hooks.sample")
  const place = ["sample", index, ...further]
  return await orEndRollout(callHook("hooks.sample", setup, place, (to) => hooks.sample!(turn, to), check))
}
