import { integer, string } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { addToPrompt } from "./add-to-prompt.ts"
import { around } from "./around.ts"
import type { Environment, EnvironmentEpisode, Observation } from "./environment.ts"

/** Options of `lookFirst`. */
export const lookFirstFields = {
  steps: integer(5, "Number of exploration actions at the start of an episode.", { min: 1 }),
  instruction: string(
    "Explore: actions have no lasting effect and no reward yet. Find out what the task needs.",
    "Text appended to the prompts of the exploration.",
  ),
  heading: string(
    "Observations of your exploration:",
    "Heading of the exploration's observations in every later prompt.",
  ),
}

/** Options of `lookFirst`. */
export type LookFirstOptions = OptionsOf<typeof lookFirstFields>

/** Observation with the text of the exploration. `found` is undefined during the exploration itself. */
interface Looked extends Observation {
  readonly found?: string
}

/**
 * Wraps an environment so that each episode begins with an exploration, after Look Before You Leap. That method has no published
 * definition; all of the following is our interpretation.
 *
 * The first `steps` actions are executed in a separate copy of the episode, without reward. The exploration ends earlier if the copy's
 * episode ends. Then the real episode starts, and every prompt shows the observations of the exploration. Steps of both stages are
 * trained on. Their anchors differ, so that step groups never mix the stages.
 *
 * @throws BAD_ARGUMENT for an unknown or invalid option
 */
export function lookFirst<Task>(environment: Environment<Task>, options: LookFirstOptions = {}): Environment<Task> {
  const { steps, instruction, heading } = readOptions("lookFirst", options, lookFirstFields)
  return {
    ...around(environment),
    async start(task, context) {
      const { signal, random } = context
      const copy = await environment.start(task, { signal, random: random.derive("look") })
      let episode: EnvironmentEpisode | undefined
      const seen = [copy.first.text]
      const dispose = async (one: EnvironmentEpisode | undefined) => await one?.[Symbol.asyncDispose]?.()
      const look = ({ text, anchor, actions, images }: Observation): Looked => ({
        ...{ text, anchor: `look\n${anchor}` },
        ...(actions && { actions }),
        ...(images && { images }),
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
      if (found === undefined) return addToPrompt(environment.prompt(task, history, now), instruction)
      const acted = history.filter(({ observation }) => (observation as Looked).found !== undefined)
      return addToPrompt(environment.prompt(task, acted, now), `${heading}\n${found}`)
    },
    parse: (completion, now) => environment.parse(completion, now),
    ...(environment.completionPattern && { completionPattern: (now) => environment.completionPattern!(now) }),
    ...(environment.answer && { answer: (task) => environment.answer!(task) }),
    ...(environment.verify && { verify: (task, now, action) => environment.verify!(task, now, action) }),
  }
}
