import { GigpoError } from "../../errors.ts"
import { readAction } from "../agent.ts"
import type { Environment, EnvironmentEpisode, EpisodeContext, Observation } from "../environment.ts"
import { alfworldExpert } from "./expert/expert.ts"
import { Game, type World } from "./game.ts"
import { GameCache } from "./game-cache.ts"
import { openGameFolder } from "./game-folder.ts"
import { generateHousehold } from "./generate/generate.ts"
import { type HouseholdSplit, householdTasks } from "./generate/tasks.ts"
import { type AlfworldOptions, resolveOptions } from "./options.ts"
import { promptText } from "./prompt.ts"
import type { AlfworldTask } from "./tasks.ts"

export type { AlfworldOptions } from "./options.ts"
export type { AlfworldTask, GameTask } from "./tasks.ts"

/** Games kept ready; a group's episodes share one. */
const cachedGames = 64

/**
 * ALFWorld: household tasks told in text, played natively. With `data` the games of ALFWorld itself, answered letter by
 * letter as its own engine answers; without, households that we generate. Done is rewarded with 10, all else with 0, as
 * in verl-agent. Commands that do nothing are no error: "Nothing happens."
 *
 * Metrics: `success`. Rejects with `BAD_CONFIG` where options are wrong, `BAD_DATA` or `IO` where games are; so does the
 * start of an episode whose game is corrupt.
 */
export async function alfworld(options: AlfworldOptions = {}): Promise<Environment<AlfworldTask>> {
  const resolved = resolveOptions(options)
  const { data, trainSplit, testSplit, taskTypes, size, wording, scenes, thinking, maxSteps } = resolved
  const households = { size, taskTypes, wording, scenes }
  const folder =
    data === undefined ? undefined : await openGameFolder(data, { train: trainSplit, test: testSplit }, taskTypes)
  const games = new GameCache<AlfworldTask>((task) => {
    if (!("game" in task)) return Game.parse(generateHousehold(task, households), `household ${JSON.stringify(task)}`)
    if (folder) return folder.load(task)
    throw new GigpoError("BAD_CONFIG", `alfworld: the task ${task.game} is a file; give its folder as data.`)
  }, cachedGames)

  return {
    name: "alfworld",
    tasks(split, random) {
      if (folder) return folder.tasks(split, random)
      return householdTasks(split === "train" ? "train" : (testSplit as HouseholdSplit), random, households)
    },
    async start(task, context) {
      context.signal.throwIfAborted()
      return startEpisode((await games.get(task)).start(), maxSteps, context)
    },
    prompt:
      resolved.prompt ?? ((_task, history, now) => [{ role: "user", content: promptText(history, now, resolved) }]),
    parse: resolved.parse ?? ((reply) => readAction(reply, { tail: 30, thinking })),
    expert: (task) => alfworldExpert(() => games.now(task), { expert: resolved.expert, thinking }),
  }
}

function startEpisode(world: World, maxSteps: number, { signal }: EpisodeContext): EnvironmentEpisode {
  signal.throwIfAborted()
  let steps = 0
  let state: "running" | "ended" | "disposed" = "running"
  return {
    first: observe(world, world.text),
    async step(action) {
      signal.throwIfAborted()
      if (state === "disposed") throw new GigpoError("DISPOSED", "This ALFWorld episode was disposed; start a new one.")
      if (state === "ended") throw new GigpoError("BAD_ARGUMENT", "This ALFWorld episode is over; start a new one.")
      const text = world.step(action)
      const terminated = world.won
      const truncated = !terminated && ++steps >= maxSteps
      if (terminated || truncated) state = "ended"
      return {
        observation: observe(world, text),
        reward: terminated ? 10 : 0,
        terminated,
        truncated,
        metrics: { success: terminated ? 1 : 0 },
      }
    },
    async [Symbol.asyncDispose]() {
      state = "disposed"
    },
  }
}

/** `help` is a command of the newer games that no player needs; verl-agent leaves it out of the list too. */
function observe(world: World, text: string): Observation {
  return { text, anchor: text, actions: world.admissible().filter((command) => command !== "help") }
}
