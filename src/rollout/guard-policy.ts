import { setImmediate } from "node:timers/promises"
import { checkRequest } from "../engine/check-request.ts"
import type { Completion, SampleRequest, Sampler } from "../engine/engine.ts"
import { GigpoError, type GigpoErrorCode } from "../util/errors.ts"
import { linkAbort } from "../util/linked-abort.ts"
import { checkCompletion } from "./completion.ts"
import { RolloutFault } from "./faults.ts"

/**
 * The policy as an agent is given it: completions end with the episode. A request that is refused is the agent's own fault; when the
 * policy fails otherwise the rollout ends, whatever the agent makes of it.
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

/** What is wrong with a request alone. */
const requests: ReadonlySet<GigpoErrorCode> = new Set(["BAD_ARGUMENT", "CONSTRAINT_FAILED"])

/** Fails a turn of the event loop later: an agent that tries again and again must not keep everybody else from theirs. */
export async function notAtOnce<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    await setImmediate()
    throw error
  }
}
