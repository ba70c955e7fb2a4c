import { createInterface } from "node:readline"
import type { Environment } from "../environment/environment.ts"
import { bareAction, expertCompletions } from "../rollout/choosers.ts"
import { startEpisode } from "../rollout/environment-episode.ts"
import { type ActionSelector, type Choice, playTurns } from "../rollout/turns.ts"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"
import { activity } from "./terminal/activity.ts"
import type { PlayView } from "./terminal/play-view.ts"

export interface PlaySetup<Task = unknown> {
  readonly environment: Environment<Task>
  readonly task: Task
  readonly random: Random
  /** Timeout of one call of the environment, in seconds. */
  readonly environmentTimeout: number
  readonly signal: AbortSignal
  readonly view: PlayView
  readonly player: ActionPlayer
}

export interface ActionPlayer {
  readonly choose: ActionSelector<Choice, "stopped">
  /**
   * Whether actions are typed without a completion: no completion is shown, and an unknown action is requested again.
   */
  readonly bare: boolean
}

/** Plays one episode without a model. */
export async function playActions<Task>(setup: PlaySetup<Task>): Promise<void> {
  const { random, view, player } = setup
  await using episode = await startEpisode({ ...setup, random: random.derive("environment") })
  let shown = 0
  const choose: ActionPlayer["choose"] = async (situation) => {
    if (situation.index === 0 && shown === 0) view.prompt(await situation.messages())
    // Skip if an action is requested again.
    if (situation.index === shown) view.observation(situation.now)
    shown = situation.index + 1
    return await player.choose(situation)
  }
  const askAgain = (error: unknown): boolean => {
    if (!(player.bare && GigpoError.is(error) && error.code === "BAD_ARGUMENT")) return false
    view.note(error.message)
    return true
  }
  const turns = playTurns(episode, choose, { askAgain })
  let metrics: Readonly<Record<string, number>> = {}
  for (;;) {
    const { done, value } = await turns.next()
    if (done) {
      if (value.outcome === "stopped") return view.end(player.bare ? "stopped" : "silent", {})
      view.observation(value.last, true)
      return view.end(value.outcome, metrics)
    }
    const { text, action, valid } = value.choice
    view.step({ ...(!player.bare && { completion: text }), action, valid, reward: value.result.reward })
    metrics = value.result.metrics ?? {}
  }
}

export function expertPlayer<Task>(environment: Environment<Task>, task: Task): ActionPlayer {
  if (!environment.expert)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `${environment.name} has no expert; use --by-hand or --model instead of --expert.`,
    )
  return { choose: expertCompletions(environment.expert(task)), bare: false }
}

/** Player that reads one action per line from standard input, until the input ends. */
export function handPlayer(view: PlayView, signal: AbortSignal): ActionPlayer {
  const input = createInterface({ input: process.stdin, signal })
  const lines = input[Symbol.asyncIterator]()
  const choose: ActionPlayer["choose"] = async ({ now }) => {
    for (;;) {
      view.ask(now.actions)
      const { done, value } = await activity.idle(() => lines.next())
      signal.throwIfAborted()
      if (done) return "stopped"
      const action = value.trim()
      if (action !== "") return bareAction(action)
    }
  }
  return { choose, bare: true }
}
