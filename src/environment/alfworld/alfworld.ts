import { GigpoError } from "../../util/errors.ts"
import { readAction, recall } from "../agent.ts"
import type { Environment, EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
import { Lifecycle } from "../lifecycle.ts"
import { successMetrics } from "../success.ts"
import { alfworldExpert } from "./expert/expert.ts"
import { Game, type World } from "./game.ts"
import { GameCache } from "./game-cache.ts"
import { openGameFolder } from "./game-folder.ts"
import { householdTexts } from "./generate/generate.ts"
import { type HouseholdSplit, householdTasks } from "./generate/tasks.ts"
import { type AlfworldOptions, resolveOptions } from "./options.ts"
import { promptText } from "./prompt.ts"
import { type AlfworldTask, checkTask } from "./tasks.ts"

export type { HouseholdSize } from "./generate/options.ts"
export type { TaskType } from "./generate/task-types.ts"
export type { AlfworldOptions } from "./options.ts"
export type { AlfworldTask, GameTask } from "./tasks.ts"

/** Games kept ready; a group's episodes share one. */
const cachedGames = 64

/**
 * ALFWorld: household tasks told in text, played natively. With `data` the games of ALFWorld itself, answered letter by
 * letter as its own engine answers; without, households that we generate. Done is rewarded with 10, all else with 0, as
 * in verl-agent. Commands that do nothing are no error: "Nothing happens."
 *
 * Metrics: `success`, and `success/<task type>` for the type of the episode's task. Rejects with `BAD_CONFIG` where options are
 * wrong, `BAD_DATA` where games are, and the signal's reason; so does the start of an episode whose game is corrupt.
 */
export async function alfworld(options: AlfworldOptions = {}): Promise<Environment<AlfworldTask>> {
  const resolved = resolveOptions(options)
  const { data, trainSplit, testSplit, taskTypes, size, wording, scenes, thinking, maxSteps, signal } = resolved
  const households = { size, taskTypes, wording, scenes }
  const folders = { train: trainSplit, test: testSplit }
  signal?.throwIfAborted()
  const folder = data === undefined ? undefined : await openGameFolder(data, folders, taskTypes, signal)
  const games = new GameCache<AlfworldTask>((task) => {
    if (!("game" in task)) return Game.parse(householdTexts(task, households), `household ${JSON.stringify(task)}`)
    if (folder) return folder.load(task)
    throw new GigpoError("BAD_CONFIG", `alfworld: the task ${task.game} is a file; give its folder as data.`)
  }, cachedGames)

  const { speech, remembers } = recall(resolved)
  return {
    name: "alfworld",
    ...remembers,
    tasks(split, random) {
      if (folder) return folder.tasks(split, random)
      return householdTasks(split === "train" ? "train" : (testSplit as HouseholdSplit), random, households)
    },
    async start(task, context) {
      context.signal.throwIfAborted()
      const game = await games.get(checkTask(task))
      return startEpisode(game.start(), task, maxSteps, context)
    },
    prompt: resolved.prompt ?? ((_task, history, now) => [{ role: "user", content: promptText(history, now, speech) }]),
    parse: resolved.parse ?? ((reply) => readAction(reply, { tail: 30, thinking })),
    expert: (task) => alfworldExpert(() => games.now(checkTask(task)), { expert: resolved.expert, thinking }),
  }
}

function startEpisode(
  world: World,
  { taskType }: AlfworldTask,
  maxSteps: number,
  { signal }: EpisodeContext,
): EnvironmentEpisode {
  const life = new Lifecycle("ALFWorld", signal)
  let steps = 0
  return {
    first: observe(world, world.text),
    async step(action) {
      life.check()
      const text = world.step(action)
      const terminated = world.won
      const truncated = !terminated && ++steps >= maxSteps
      if (terminated || truncated) life.end()
      return {
        observation: observe(world, text),
        reward: terminated ? 10 : 0,
        terminated,
        truncated,
        metrics: successMetrics(terminated, taskType),
      }
    },
    async [Symbol.asyncDispose]() {
      life.dispose()
    },
  }
}

/** `help` is a command of the newer games that no player needs; verl-agent leaves it out of the list too. */
function observe(world: World, text: string): Observation {
  return { text, anchor: text, actions: world.admissible().filter((command) => command !== "help") }
}
