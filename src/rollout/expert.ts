import { environmentError } from "../environment/contract.ts"
import type { Message } from "../environment/environment.ts"
import { GigpoError } from "../util/errors.ts"
import { checkEpisodes, checkMethods } from "./check-setup.ts"
import { expertReplies, withMessages } from "./choosers.ts"
import { type EnvironmentEpisodeSetup, startEpisode } from "./environment-episode.ts"
import { playTurns } from "./turns.ts"

/** Arguments of `playExpert`. */
export interface ExpertSetup<Task = unknown> extends EnvironmentEpisodeSetup<Task> {
  /** Steps after which the episode is cut off. */
  readonly maxSteps: number
}

/** What the model would be shown at one step, and what the expert replies to it. */
export interface ExpertStep {
  readonly messages: readonly Message[]
  readonly reply: string
  /** Whether the environment could read it. */
  readonly valid: boolean
}

/** Lets the environment's expert play one episode, to its end or until it does not know what to do. */
export async function* playExpert<Task>(setup: ExpertSetup<Task>): AsyncGenerator<ExpertStep, void, undefined> {
  checkEpisodes("playExpert", setup)
  checkMethods("environment", setup.environment, ["start", "prompt", "parse"])
  const { environment, task, maxSteps, signal } = setup
  if (!environment.expert)
    throw new GigpoError("BAD_ENVIRONMENT", `${environment.name} has no expert to learn from; use a pretrained model.`)
  try {
    const choose = withMessages(expertReplies(environment.expert(task)))
    await using episode = await startEpisode(setup)
    for await (const { choice } of playTurns(episode, choose, { maxTurns: maxSteps })) {
      const { messages, reply, valid } = choice
      yield { messages, reply, valid }
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw environmentError(environment.name, error)
  }
}
