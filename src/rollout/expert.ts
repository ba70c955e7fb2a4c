import type { Message, Turn } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import { checkMessages, checkParsed, environmentError } from "./contract.ts"
import { type EnvironmentEpisodeSetup, startEpisode } from "./environment-episode.ts"

export interface ExpertSetup<Task = unknown> extends EnvironmentEpisodeSetup<Task> {
  /** Steps after which the episode is cut off. */
  readonly maxSteps: number
}

/** What the model would be shown at one step, and what the expert replies to it. */
export interface ExpertStep {
  readonly messages: readonly Message[]
  readonly reply: string
}

/** Lets the environment's expert play one episode, to its end or until it does not know what to do. */
export async function* playExpert<Task>(setup: ExpertSetup<Task>): AsyncGenerator<ExpertStep, void, undefined> {
  const { environment, task, maxSteps, signal } = setup
  const { name } = environment
  if (!environment.expert)
    throw new GigpoError("BAD_ENVIRONMENT", `${name} has no expert to learn from; use a pretrained model.`)
  try {
    const expert = environment.expert(task)
    await using episode = await startEpisode(setup)
    const history: Turn[] = []
    let observation = episode.first
    for (let index = 0; index < maxSteps; index++) {
      const reply = expert.reply(observation, history)
      if (reply === undefined) return
      yield { messages: checkMessages(name, environment.prompt(task, history, observation)), reply }
      const { action } = checkParsed(name, environment.parse(reply, observation))
      const result = await episode.step(action)
      if (result.terminated || result.truncated) return
      history.push({ observation, reply, action })
      observation = result.observation
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw environmentError(name, error)
  }
}
