import type { Message, Observation, Turn } from "../environment/environment.ts"
import type { Random } from "../util/random.ts"
import type { ActionSelector, Choice } from "./turns.ts"

/** What an environment's expert says, until it does not know what to do. */
export function expertReplies(expert: {
  reply(now: Observation, history: readonly Turn[]): string | undefined | Promise<string | undefined>
}): ActionSelector<Choice, "stopped"> {
  return async ({ now, history, parse }) => {
    const reply = await expert.reply(now, history)
    return reply === undefined ? "stopped" : { ...(await parse(reply)), reply }
  }
}

/** Any of the actions that the environment offers, or of `others` where it names none, else what it makes of an empty reply. */
export function randomActions(random: Random, others: readonly string[] = []): ActionSelector {
  return async ({ now, parse }) => {
    const { actions = others } = now
    const action = actions.length > 0 ? actions[random.below(actions.length)]! : (await parse("")).action
    return bareAction(action)
  }
}

/** These actions or choices one after the other, then whatever the other chooser says; to that the first `uncounted` of them are no turns. */
export function firstTake<Chosen extends Choice, Stop extends string>(
  taken: readonly (string | Choice)[],
  choose: ActionSelector<Chosen, Stop>,
  uncounted: number = taken.length,
): ActionSelector<Chosen | Choice, Stop> {
  return async (situation) => {
    const choice = taken[situation.index]
    if (choice !== undefined) return typeof choice === "string" ? bareAction(choice) : choice
    return await choose({ ...situation, index: situation.index - uncounted })
  }
}

/** With the prompt that a model would be shown before it replies. */
export function withMessages<Stop extends string>(
  choose: ActionSelector<Choice, Stop>,
): ActionSelector<Choice & { readonly messages: readonly Message[] }, Stop> {
  return async (situation) => {
    const choice = await choose(situation)
    return typeof choice === "string" ? choice : { ...choice, messages: await situation.messages() }
  }
}

/** An action without words. */
export function bareAction(action: string): Choice {
  return { reply: action, action, valid: true }
}
