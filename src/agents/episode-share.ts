import type { Completion, SampleRequest, Sampler } from "../engine/engine.ts"
import { FairQueue } from "../http/fair-queue.ts"

/** Replies of one episode that are sampled at the same time; more wait. */
const mostReplies = 64
/** Replies from which on an episode counts as a client of its own. */
const fewReplies = 16

/** What an episode samples from. */
export interface EpisodeShare extends Pick<Sampler, "maxPositions"> {
  sample(request: SampleRequest): Promise<Completion>
}

let episodes = 0

/**
 * A policy for the agent of one episode, which stops no other episode however much it asks for. Agents that ask for little are one client
 * to the engine, which then has the whole of each step; one that asks for more than 16 replies at the same time shares the steps with all
 * others, half and half. What is sampled is the same.
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
