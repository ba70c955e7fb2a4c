import { integer, string } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { addToPrompt } from "./add-to-prompt.ts"
import { around } from "./around.ts"
import type { Environment, EnvironmentEpisode, Observation } from "./environment.ts"

/** Options of `lookFirst`. */
export const lookFirstFields = {
  steps: integer(5, "Actions of an episode that only look around.", { min: 1 }),
  ask: string(
    "You are looking around: nothing that you do now lasts or earns. Find out what the task needs.",
    "Added to the prompts in which it does.",
  ),
  shown: string("What you found out when you looked around:", "What it saw is shown under in every later prompt."),
}

/** Options of `lookFirst`. */
export type LookFirstOptions = OptionsOf<typeof lookFirstFields>

/** What is seen once it acts in earnest tells what was found before; what is seen while it looks around does not. */
interface Looked extends Observation {
  readonly found?: string
}

/**
 * The environment, explored before it is acted in (after Look Before You Leap, of which no definition is published): the first actions of an
 * episode are taken in a copy that is thrown away, without reward, until so many were taken or the copy's episode is over; then the
 * episode begins, and every prompt shows what was seen. Both stages are learned from; their anchors differ, so that an action is
 * compared with others of its own stage. All of it is our reading.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function lookFirst<Task>(environment: Environment<Task>, options: LookFirstOptions = {}): Environment<Task> {
  const { steps, ask, shown } = readOptions("lookFirst", options, lookFirstFields)
  return {
    ...around(environment),
    async start(task, context) {
      const { signal, random } = context
      const copy = await environment.start(task, { signal, random: random.fork("look") })
      let episode: EnvironmentEpisode | undefined
      const seen = [copy.first.text]
      const dispose = async (one: EnvironmentEpisode | undefined) => await one?.[Symbol.asyncDispose]?.()
      const look = ({ text, anchor, actions }: Observation): Looked => ({
        ...{ text, anchor: `look\n${anchor}` },
        ...(actions && { actions }),
      })
      const act = (observation: Observation): Looked => ({ ...observation, found: seen.join("\n") })
      let looked = 0
      return {
        first: look(copy.first),
        async step(action) {
          if (episode) {
            const result = await episode.step(action)
            return { ...result, observation: act(result.observation) }
          }
          const { observation, terminated, truncated } = await copy.step(action)
          seen.push(`> ${action}`, observation.text)
          const going = { reward: 0, terminated: false, truncated: false }
          if (++looked < steps && !terminated && !truncated) return { ...going, observation: look(observation) }
          episode = await environment.start(task, context)
          return { ...going, observation: act(episode.first) }
        },
        async [Symbol.asyncDispose]() {
          await Promise.all([dispose(copy), dispose(episode)])
        },
      }
    },
    prompt(task, history, now: Looked) {
      const { found } = now
      if (found === undefined) return addToPrompt(environment.prompt(task, history, now), ask)
      const acted = history.filter(({ observation }) => (observation as Looked).found !== undefined)
      return addToPrompt(environment.prompt(task, acted, now), `${shown}\n${found}`)
    },
    parse: (reply, now) => environment.parse(reply, now),
  }
}
