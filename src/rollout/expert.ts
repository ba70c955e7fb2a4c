import { environmentError } from "../environment/contract.ts"
import type { Message } from "../environment/environment.ts"
import { GigpoError } from "../util/errors.ts"
import { checkEpisodes, checkMethods } from "./check-setup.ts"
import { expertCompletions, withMessages } from "./choosers.ts"
import { type EnvironmentEpisodeSetup, startEpisode } from "./environment-episode.ts"
import { playTurns } from "./turns.ts"

/** Arguments of `streamExpert`. */
export interface ExpertSetup<Task = unknown> extends EnvironmentEpisodeSetup<Task> {
  /** Maximum number of steps. Longer episodes are truncated. */
  readonly maxSteps: number
}

/** Step of an expert: prompt that a model would receive, and completion of the expert. */
export interface ExpertStep {
  /** Messages of the prompt. */
  readonly messages: readonly Message[]
  /** Completion of the expert. */
  readonly completion: string
  /** Whether the environment could parse the completion. */
  readonly valid: boolean
}

/**
 * Plays one episode with the expert of an environment, until the end or until the expert returns undefined.
 *
 * @throws GigpoError `BAD_ENVIRONMENT` for an environment without an expert, and errors of the environment.
 */
export async function* streamExpert<Task>(setup: ExpertSetup<Task>): AsyncGenerator<ExpertStep, void, undefined> {
  checkEpisodes("streamExpert", setup)
  checkMethods("environment", setup.environment, ["start", "prompt", "parse"])
  const { environment, task, maxSteps, signal } = setup
  if (!environment.expert)
    throw new GigpoError("BAD_ENVIRONMENT", `${environment.name} has no expert to learn from; use a pretrained model.`)
  try {
    const choose = withMessages(expertCompletions(environment.expert(task)))
    await using episode = await startEpisode(setup)
    for await (const { choice } of playTurns(episode, choose, { maxTurns: maxSteps })) {
      const { messages, text, valid } = choice
      yield { messages, completion: text, valid }
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw environmentError(environment.name, error)
  }
}
