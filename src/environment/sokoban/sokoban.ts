import { GigpoError } from "../../util/errors.ts"
import { hasThought, settleMemory } from "../agent.ts"
import { actionPattern, completionPattern } from "../completion-pattern.ts"
import type { Environment, EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
import { Lifecycle } from "../lifecycle.ts"
import { messageOf, Pictures, pictured } from "../picture.ts"
import { firstContained, readTagged } from "../tags.ts"
import { roomImage } from "./draw.ts"
import { sokobanExpert } from "./expert.ts"
import { boxesOnTarget, isSolved, move } from "./move.ts"
import { resolveOptions, type SokobanOptions, type SokobanSettings } from "./options.ts"
import { sokobanOracle } from "./oracle.ts"
import { promptParts } from "./prompt.ts"
import { directions, formatRoom, parseRoom, type Room } from "./room.ts"
import { type SokobanTask, sokobanTasks } from "./tasks.ts"

export type { SokobanOptions } from "./options.ts"
export type { SokobanTask } from "./tasks.ts"

/**
 * Sokoban with the levels ("rooms") and rewards of gym-sokoban, as in verl-agent.
 *
 * Rewards: -0.1 per step, +1 when a box is pushed onto a target, -1 when a box is pushed off a target, +10 when the room is solved.
 * Actions: up, down, left, right, and `still` for a completion without an action, which changes nothing. `still` counts as a step.
 *
 * Metrics: `success`, `boxesOnTarget`.
 *
 * @throws BAD_CONFIG for unknown or invalid options
 */
export function sokoban(options: SokobanOptions = {}): Environment<SokobanTask> {
  const resolved = resolveOptions(options)
  const { speech, remembers } = settleMemory(resolved)
  const oracle = sokobanOracle()
  const pictures = new Pictures()
  return {
    name: "sokoban",
    ...remembers,
    tasks: (split, random) => sokobanTasks(split, random, resolved),
    start: async (task, context) => await startEpisode(roomOf(task), resolved, pictures, context),
    prompt: resolved.prompt ?? ((_task, history, now) => [messageOf("user", promptParts(history, now, speech))]),
    parse:
      resolved.parse ??
      ((completion) => {
        const action = firstContained(readTagged(completion, "action").answer ?? "", actions)
        const thought = resolved.thinking !== "required" || hasThought(completion)
        return { action: action ?? "still", valid: action !== undefined && thought }
      }),
    ...(!resolved.parse && {
      completionPattern: () => completionPattern(resolved.thinking, actionPattern(actions)),
    }),
    expert: () => sokobanExpert(resolved.thinking === "required"),
    verify: (_task, now, action) => oracle(now, action),
  }
}

const actions = [...directions, "still"] as const

function roomOf(task: SokobanTask | null | undefined): Room {
  if (typeof task?.room === "string") return parseRoom(task.room)
  throw new GigpoError("BAD_ARGUMENT", "sokoban: a task must be { seed, room }, as tasks() returns it.")
}

async function startEpisode(
  start: Room,
  { maxSteps, observation: form }: SokobanSettings,
  pictures: Pictures,
  { signal }: EpisodeContext,
): Promise<EnvironmentEpisode> {
  const life = new Lifecycle("Sokoban", signal)
  let room = start
  let steps = 0
  const observe = (room: Room) => {
    const observation = observationOf(room)
    return pictured(observation, form, () => pictures.of(observation.text, () => roomImage(room)))
  }
  return {
    first: await observe(start),
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
        observation: await observe(room),
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

function observationOf(room: Room): Observation {
  const text = formatRoom(room)
  return { text, anchor: text, actions: directions }
}
