import type { Message, Observation, ParsedAction, StepResult, Turn } from "../environment/environment.ts"

// The one loop that plays an episode, whoever plays: the policy, an expert, a person, dice.

/** An environment's episode behind a guard: every answer is checked, and what is thrown or late is said in the guard's words. */
export interface GuardedEpisode {
  readonly first: Observation
  prompt(history: readonly Turn[], now: Observation): Promise<readonly Message[]>
  parse(reply: string, now: Observation): Promise<ParsedAction>
  step(action: string): Promise<StepResult>
}

/** What a chooser is asked about. */
export interface SelectionContext {
  /** The turn's number in the episode, from 0. */
  readonly index: number
  readonly now: Observation
  readonly history: readonly Turn[]
  /** The prompt of this turn, made only where somebody asks for it. */
  messages(): Promise<readonly Message[]>
  /** What the environment reads from a reply. */
  parse(reply: string): Promise<ParsedAction>
}

/** What is said and done at one turn; who acts without words says the action. */
export interface Choice extends ParsedAction {
  readonly reply: string
}

/** Chooses what to do next, or says with a word of its own why the episode stops here. */
export type ActionSelector<Chosen extends Choice = Choice, Stop extends string = never> = (
  situation: SelectionContext,
) => Promise<Chosen | Stop>

/** One turn that was played. */
export interface Played<Chosen extends Choice = Choice> {
  readonly index: number
  readonly observation: Observation
  readonly choice: Chosen
  readonly result: StepResult
}

export interface TurnsEnd<Stop extends string> {
  /** As the environment said; "truncated" too after the most turns; or the chooser's own word. */
  readonly outcome: "terminated" | "truncated" | Stop
  /** What was observed last. */
  readonly last: Observation
}

export interface TurnLimits {
  /** Turns after which the episode is cut off. Default: none. */
  readonly maxTurns?: number
  /** Told what a step threw; where it gives true, nothing has happened and the chooser is asked again. */
  readonly askAgain?: (error: unknown, choice: Choice) => boolean
}

/** Plays an episode and hands out its turns as they happen. */
export async function* playTurns<Chosen extends Choice, Stop extends string = never>(
  episode: GuardedEpisode,
  choose: ActionSelector<Chosen, Stop>,
  { maxTurns = Number.POSITIVE_INFINITY, askAgain }: TurnLimits = {},
): AsyncGenerator<Played<Chosen>, TurnsEnd<Stop>, undefined> {
  const history: Turn[] = []
  let now = episode.first
  for (let index = 0; index < maxTurns; ) {
    const observation = now
    const choice = await choose({
      index,
      now,
      history,
      messages: () => episode.prompt(history, observation),
      parse: (reply) => episode.parse(reply, observation),
    })
    if (typeof choice === "string") return { outcome: choice, last: now }
    const { reply, action } = choice
    let result: StepResult
    try {
      result = await episode.step(action)
    } catch (error) {
      if (askAgain?.(error, choice)) continue
      throw error
    }
    yield { index, observation, choice, result }
    now = result.observation
    if (result.terminated) return { outcome: "terminated", last: now }
    if (result.truncated) return { outcome: "truncated", last: now }
    history.push({ observation, reply, action })
    index++
  }
  return { outcome: "truncated", last: now }
}
