import { string } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { addToPrompt } from "./add-to-prompt.ts"
import { around } from "./around.ts"
import type { Environment, Observation } from "./environment.ts"

/** Options of `planFirst`. */
export const planFirstFields = {
  instruction: string(
    "Do not act yet. First write a plan: the sub-goals of the task, one per line.",
    "Text appended to the prompt of the planning step.",
  ),
  heading: string("Your plan:", "Heading of the plan in every later prompt."),
}

/** Options of `planFirst`. */
export type PlanFirstOptions = OptionsOf<typeof planFirstFields>

/** Observation of the planning step. */
interface Planning extends Observation {
  readonly planning?: true
}

/**
 * Wraps an environment so that the first completion of an episode is a plan, which every later prompt shows (the structure of StraTA, arXiv
 * 2605.06642, and HiMAC, arXiv 2603.00977).
 *
 * The plan is a step with reward 0 and a separate anchor, so that plans of a task are compared only with plans. For several rollouts of
 * each plan, branch at step 1 (see `branchAt`). Our interpretation: one policy plans and acts, and is trained on both.
 *
 * @throws BAD_ARGUMENT for an unknown or invalid option
 */
export function planFirst<Task>(environment: Environment<Task>, options: PlanFirstOptions = {}): Environment<Task> {
  const { instruction, heading } = readOptions("planFirst", options, planFirstFields)
  return {
    ...around(environment),
    async start(task, context) {
      const episode = await environment.start(task, context)
      const { first } = episode
      const { text, anchor, images } = first
      const planning: Planning = { text, anchor: `plan\n${anchor}`, planning: true, ...(images && { images }) }
      let planned = false
      return {
        first: planning,
        async step(action) {
          if (planned) return await episode.step(action)
          context.signal.throwIfAborted()
          planned = true
          return { observation: first, reward: 0, terminated: false, truncated: false }
        },
        [Symbol.asyncDispose]: async () => await episode[Symbol.asyncDispose]?.(),
      }
    },
    prompt(task, [plan, ...history], now) {
      const messages = environment.prompt(task, history, now)
      return addToPrompt(messages, plan === undefined ? instruction : `${heading}\n${plan.action}`)
    },
    parse(completion, now: Planning) {
      if (!now.planning) return environment.parse(completion, now)
      const action = completion.trim()
      return { action, valid: action !== "" }
    },
    ...(environment.completionPattern && {
      completionPattern: (now: Planning) => (now.planning ? undefined : environment.completionPattern!(now)),
    }),
    ...(environment.answer && { answer: (task) => environment.answer!(task) }),
    ...(environment.verify && {
      verify: (task, now: Planning, action) => (now.planning ? undefined : environment.verify!(task, now, action)),
    }),
    ...(environment.expert && {
      expert(task: Task) {
        const expert = environment.expert!(task)
        return {
          complete: (now: Observation, [plan, ...history]) =>
            plan === undefined ? "Do what leads on, step by step." : expert.complete(now, history),
        } satisfies ReturnType<NonNullable<Environment<Task>["expert"]>>
      },
    }),
  }
}
