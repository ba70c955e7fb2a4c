import { createInterface } from "node:readline"
import type { Environment, Observation, Turn } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import type { Random } from "../random.ts"
import { startEpisode } from "../rollout/environment-episode.ts"
import type { PlayView } from "./terminal/play-view.ts"

/** What is done at one step: a reply as a model would give it, or the bare action. */
type Choice = { readonly reply: string } | { readonly action: string }

/** The next choice; undefined ends the episode. */
export type Chooser = (now: Observation, history: readonly Turn[]) => Promise<Choice | undefined>

export interface PlaySetup<Task = unknown> {
  readonly environment: Environment<Task>
  readonly task: Task
  readonly random: Random
  /** Seconds for one call of the environment. */
  readonly environmentTimeout: number
  readonly signal: AbortSignal
  readonly view: PlayView
  readonly choose: Chooser
}

/** Plays one episode without a model. An action that the environment does not know is asked for again. */
export async function playActions<Task>(setup: PlaySetup<Task>): Promise<void> {
  const { environment, random, view, choose } = setup
  await using episode = await startEpisode({ ...setup, random: random.fork("environment") })
  const history: Turn[] = []
  let now = episode.first
  view.prompt(environment.prompt(setup.task, history, now))
  view.observation(now)
  for (;;) {
    const choice = await choose(now, history)
    if (choice === undefined) return view.end("stopped", {})
    const reply = "reply" in choice ? choice.reply : choice.action
    const { action, valid } = "reply" in choice ? environment.parse(reply, now) : { action: reply, valid: true }
    const result = await episode.step(action).catch((error: unknown) => {
      if ("action" in choice && GigpoError.is(error) && error.code === "BAD_ARGUMENT") return error
      throw error
    })
    if (GigpoError.is(result)) {
      view.note(result.message)
      continue
    }
    view.step({ ...("reply" in choice && { reply }), action, valid, reward: result.reward })
    history.push({ observation: now, reply, action })
    now = result.observation
    const ended = result.terminated || result.truncated
    view.observation(now, ended)
    if (ended) return view.end(result.terminated ? "terminated" : "truncated", result.metrics ?? {})
  }
}

export function expertActions<Task>(environment: Environment<Task>, task: Task): Chooser {
  if (!environment.expert)
    throw new GigpoError("BAD_ARGUMENT", `${environment.name} has no expert; leave --expert off or play --by-hand.`)
  const expert = environment.expert(task)
  return async (now, history) => {
    const reply = expert.reply(now, history)
    return reply === undefined ? undefined : { reply }
  }
}

/** Reads one action a line from standard input, until it ends. */
export function askForActions(view: PlayView, signal: AbortSignal): Chooser {
  const input = createInterface({ input: process.stdin, signal })
  const lines = input[Symbol.asyncIterator]()
  return async (now) => {
    for (;;) {
      view.ask(now.actions)
      const { done, value } = await lines.next()
      signal.throwIfAborted()
      if (done) return undefined
      const action = value.trim()
      if (action !== "") return { action }
    }
  }
}
