import { string } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { addToPrompt } from "./add-to-prompt.ts"
import { around } from "./around.ts"
import type { Environment, Observation } from "./environment.ts"

/** Options of `planFirst`. */
export const planFirstFields = {
  ask: string(
    "Do not act yet. First write a plan: the sub-goals that lead to the task's end, one a line.",
    "Added to the prompt that asks for the plan.",
  ),
  shown: string("Your plan:", "What the plan is shown under in every later prompt."),
}

/** Options of `planFirst`. */
export type PlanFirstOptions = OptionsOf<typeof planFirstFields>

/** Marks the observation that a plan is made from. */
interface Planning extends Observation {
  readonly planning?: true
}

/**
 * The environment, played in two stages: the first reply of an episode is a plan, which every later prompt shows (the shape of StraTA, arXiv
 * 2605.06642, and HiMAC, 2603.00977). The plan is a step like any other, of reward 0, from an anchor of its own, so that plans of a task are
 * compared with plans. Several rollouts of each plan are branches at step 1, see `forkAt`. That one policy plans and acts, and is trained
 * on both at once, is our reading.
 *
 * @throws BAD_ARGUMENT for an option that has no meaning
 */
export function planFirst<Task>(environment: Environment<Task>, options: PlanFirstOptions = {}): Environment<Task> {
  const { ask, shown } = readOptions("planFirst", options, planFirstFields)
  return {
    ...around(environment),
    async start(task, context) {
      const episode = await environment.start(task, context)
      const { first } = episode
      const planning: Planning = { text: first.text, anchor: `plan\n${first.anchor}`, planning: true }
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
      return addToPrompt(messages, plan === undefined ? ask : `${shown}\n${plan.action}`)
    },
    parse(reply, now: Planning) {
      if (!now.planning) return environment.parse(reply, now)
      const action = reply.trim()
      return { action, valid: action !== "" }
    },
    ...(environment.expert && {
      expert(task: Task) {
        const expert = environment.expert!(task)
        return {
          reply: (now: Observation, [plan, ...history]) =>
            plan === undefined ? "Do what leads on, step by step." : expert.reply(now, history),
        } satisfies ReturnType<NonNullable<Environment<Task>["expert"]>>
      },
    }),
  }
}
