import { setImmediate } from "node:timers/promises"
import { checkRequest } from "../engine/check-request.ts"
import type { Completion, SampleRequest, Sampler } from "../engine/engine.ts"
import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
import { linkAbort } from "../util/linked-abort.ts"
import { checkCompletion } from "./completion.ts"
import { RolloutFault } from "./faults.ts"

/**
 * Wraps the policy for an agent: completions end with the episode. An invalid request is an error of the agent. Any other error of the policy
 * ends the rollout, even if the agent catches it.
 */
export function guardPolicy(policy: Sampler, episode: AbortController): Sampler {
  const { vocabularySize, maxPositions, deterministic } = policy
  const fail = (error: unknown) => {
    episode.abort(new RolloutFault(error))
    return error
  }
  const sample = async (request: SampleRequest): Promise<Completion> => {
    checkRequest(request, vocabularySize)
    const either = new AbortController()
    const unlink = [linkAbort(episode.signal, either), linkAbort(request.signal, either)]
    const { signal } = either
    let completion: Completion
    try {
      completion = await policy.sample({ ...request, signal })
    } catch (error) {
      throw (GigpoError.is(error) && requests.has(error.code)) || signal.aborted ? error : fail(error)
    } finally {
      for (const end of unlink) end()
    }
    try {
      return checkCompletion(completion, request, vocabularySize)
    } catch (error) {
      throw fail(error)
    }
  }
  return {
    ...{ vocabularySize, maxPositions, deterministic },
    sample: (request) => notAtOnce(sample(request)),
  }
}

/** Error codes of invalid requests. */
const requests: ReadonlySet<GigpoErrorCode> = new Set(["BAD_ARGUMENT", "CONSTRAINT_FAILED"])

/** Delays errors by a turn of the event loop, so that an agent that retries in a loop does not block other work. */
export async function notAtOnce<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    await setImmediate()
    throw error
  }
}
