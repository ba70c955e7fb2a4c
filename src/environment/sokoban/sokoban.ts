import { GigpoError } from "../../errors.ts"
import type { Environment, EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
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
  return {
    name: "sokoban",
    tasks: (split, random) => sokobanTasks(split, random, resolved),
    start: async (task, context) => startEpisode(parseRoom(task.room), resolved.maxSteps, context),
    prompt:
      resolved.prompt ?? ((_task, history, now) => [{ role: "user", content: promptText(history, now, resolved) }]),
    parse:
      resolved.parse ??
      ((reply) => {
        const { thought, answer } = readTagged(reply, "action")
        const action = firstContained(answer ?? "", actions)
        const thoughtMissing = resolved.thinking === "required" && thought === undefined
        return { action: action ?? "still", valid: action !== undefined && !thoughtMissing }
      }),
    expert: () => sokobanExpert(resolved.thinking === "required"),
  }
}

const actions = [...directions, "still"] as const

function startEpisode(start: Room, maxSteps: number, { signal }: EpisodeContext): EnvironmentEpisode {
  signal.throwIfAborted()
  let room = start
  let steps = 0
  let state: "running" | "ended" | "disposed" = "running"
  return {
    first: observe(start),
    async step(name) {
      signal.throwIfAborted()
      if (state === "disposed") throw new GigpoError("DISPOSED", "This Sokoban episode was disposed; start a new one.")
      if (state === "ended") throw new GigpoError("BAD_ARGUMENT", "This Sokoban episode is over; start a new one.")
      const action = actions.find((known) => known === name)
      if (!action) {
        throw new GigpoError("BAD_ARGUMENT", `Sokoban has no action "${name}"; use ${actions.join(", ")}.`)
      }
      const before = boxesOnTarget(room)
      if (action !== "still") room = move(room, action)
      const after = boxesOnTarget(room)
      const terminated = isSolved(room)
      const truncated = !terminated && ++steps >= maxSteps
      if (terminated || truncated) state = "ended"
      return {
        observation: observe(room),
        reward: -0.1 + (after - before) + (terminated ? 10 : 0),
        terminated,
        truncated,
        metrics: { success: terminated ? 1 : 0, boxesOnTarget: after },
      }
    },
    async [Symbol.asyncDispose]() {
      state = "disposed"
    },
  }
}

function observe(room: Room): Observation {
  const text = formatRoom(room)
  return { text, anchor: text, actions: directions }
}
