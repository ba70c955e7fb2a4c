import type { Completion, SampleRequest, Sampler } from "../engine/engine.ts"
import { FairQueue } from "../http/fair-queue.ts"

/** Maximum number of completions of one episode sampled at once; more wait. */
const mostReplies = 64
/** Number of concurrent completions above which an episode counts as a separate client. */
const fewReplies = 16

/** Sampler of an episode. */
export interface EpisodeShare extends Pick<Sampler, "maxPositions"> {
  sample(request: SampleRequest): Promise<Completion>
}

let episodes = 0

/**
 * Sampler for the agent of one episode that cannot stall other episodes. Agents with few requests are one client of the
 * engine, which uses its full steps for them. An agent with more than 16 concurrent completions is a client that shares
 * the steps with all others, half and half. Sampled tokens are the same.
 */
export function episodeShare(policy: EpisodeShare): EpisodeShare {
  const queue = new FairQueue(mostReplies, mostReplies)
  const own = ++episodes
  let running = 0
  const sample = async (request: SampleRequest) => {
    running++
    try {
      return await policy.sample(running > fewReplies ? { ...request, client: own } : request)
    } finally {
      running--
    }
  }
  return { maxPositions: policy.maxPositions, sample: (request) => queue.take("", () => sample(request)) }
}
