import { GigpoError } from "../../util/errors.ts"
import { hasThought, recall } from "../agent.ts"
import type { Environment, EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
import { Lifecycle } from "../lifecycle.ts"
import { firstContained, readTagged } from "../tags.ts"
import { sokobanExpert } from "./expert.ts"
import { boxesOnTarget, isSolved, move } from "./move.ts"
import { resolveOptions, type SokobanOptions } from "./options.ts"
import { promptText } from "./prompt.ts"
import { directions, formatRoom, parseRoom, type Room } from "./room.ts"
import { type SokobanTask, sokobanTasks } from "./tasks.ts"

export type { SokobanOptions } from "./options.ts"
export type { SokobanTask } from "./tasks.ts"

/**
 * Sokoban as gym-sokoban generates and rewards it and verl-agent plays it. A step costs 0.1; a box that comes onto a
 * target gives 1, one that leaves it takes 1; solving the room gives 10 more. Actions are up, down, left, right, and
 * `still`, which changes nothing and stands for an unreadable reply. verl-agent does not count `still` against the
 * environment's own limit but ends the episode after as many replies all the same; here the environment does both.
 *
 * Metrics: `success`, `boxesOnTarget`. Throws `BAD_CONFIG` where options are wrong.
 */
export function sokoban(options: SokobanOptions = {}): Environment<SokobanTask> {
  const resolved = resolveOptions(options)
  const { speech, remembers } = recall(resolved)
  return {
    name: "sokoban",
    ...remembers,
    tasks: (split, random) => sokobanTasks(split, random, resolved),
    start: async (task, context) => startEpisode(roomOf(task), resolved.maxSteps, context),
    prompt: resolved.prompt ?? ((_task, history, now) => [{ role: "user", content: promptText(history, now, speech) }]),
    parse:
      resolved.parse ??
      ((reply) => {
        const action = firstContained(readTagged(reply, "action").answer ?? "", actions)
        const thought = resolved.thinking !== "required" || hasThought(reply)
        return { action: action ?? "still", valid: action !== undefined && thought }
      }),
    expert: () => sokobanExpert(resolved.thinking === "required"),
  }
}

const actions = [...directions, "still"] as const

function roomOf(task: SokobanTask | null | undefined): Room {
  if (typeof task?.room === "string") return parseRoom(task.room)
  throw new GigpoError("BAD_ARGUMENT", "sokoban: a task is { seed, room }, as tasks() gives it.")
}

function startEpisode(start: Room, maxSteps: number, { signal }: EpisodeContext): EnvironmentEpisode {
  const life = new Lifecycle("Sokoban", signal)
  let room = start
  let steps = 0
  return {
    first: observe(start),
    async step(name) {
      life.check()
      const action = actions.find((known) => known === name)
      if (!action) {
        throw new GigpoError("BAD_ARGUMENT", `Sokoban has no action "${name}"; use ${actions.join(", ")}.`)
      }
      const before = boxesOnTarget(room)
      if (action !== "still") room = move(room, action)
      const after = boxesOnTarget(room)
      const terminated = isSolved(room)
      const truncated = !terminated && ++steps >= maxSteps
      if (terminated || truncated) life.end()
      return {
        observation: observe(room),
        reward: -0.1 + (after - before) + (terminated ? 10 : 0),
        terminated,
        truncated,
        metrics: { success: terminated ? 1 : 0, boxesOnTarget: after },
      }
    },
    async [Symbol.asyncDispose]() {
      life.dispose()
    },
  }
}

function observe(room: Room): Observation {
  const text = formatRoom(room)
  return { text, anchor: text, actions: directions }
}
