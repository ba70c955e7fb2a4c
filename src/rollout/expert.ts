import type { Environment, Message, Turn } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import type { Random } from "../random.ts"

/** What the model would be shown at one step, and what the expert replies to it. */
export interface ExpertStep {
  readonly messages: readonly Message[]
  readonly reply: string
}

/** Lets the environment's expert play one episode, to its end or until it does not know what to do. */
export async function* playExpert<Task>(
  environment: Environment<Task>,
  task: Task,
  random: Random,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<ExpertStep, void, undefined> {
  if (!environment.expert)
    throw new GigpoError("BAD_ENVIRONMENT", `${environment.name} has no expert to learn from; use a pretrained model.`)
  const expert = environment.expert(task)
  const episode = await environment.start(task, { signal, random })
  try {
    const history: Turn[] = []
    let observation = episode.first
    for (;;) {
      signal.throwIfAborted()
      const reply = expert.reply(observation, history)
      if (reply === undefined) return
      yield { messages: environment.prompt(task, history, observation), reply }
      const { action } = environment.parse(reply, observation)
      const result = await episode.step(action)
      if (result.terminated || result.truncated) return
      history.push({ observation, reply, action })
      observation = result.observation
    }
  } finally {
    await episode[Symbol.asyncDispose]()
  }
}
