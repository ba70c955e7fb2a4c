import { spawn } from "node:child_process"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { expect, it } from "vitest"
import { exportGames } from "../../src/benchmark/export-games.ts"
import { Random } from "../../src/util/random.ts"
import { householdBenchmark, type Moment, playedEpisode } from "./households.ts"

const python = process.env.GIGPO_ALFWORLD_PYTHON
/** Of each of the six types of task. */
const games = Number(process.env.GIGPO_ALFWORLD_GAMES ?? 1)
const split = "valid_unseen"
const maxSteps = 30

interface Answer {
  readonly text: string
  readonly actions: readonly string[]
  readonly score: number
  readonly done: boolean
  readonly won: boolean
}

it.skipIf(python === undefined).each([
  ["medium", "move"],
  ["small", "put"],
] as const)(
  `exported %s households that say "%s" are played by ALFWorld itself as here${python ? "" : " (GIGPO_ALFWORLD_PYTHON names a Python that has it)"}`,
  async (size, wording) => {
    const folder = await mkdtemp(join(tmpdir(), "gigpo-alfworld-"))
    try {
      const benchmark = await householdBenchmark({ testSplit: split, maxSteps, size, wording }, games)
      const data = await exportGames(benchmark, join(folder, "games"))
      const { games: paths } = JSON.parse(await readFile(join(folder, "games", "gigpo.json"), "utf8"))
      const path = (key: string) => paths[key].replace(`json_2.1.1/${split}/`, "")
      const started = performance.now()
      const episodes: { game: string; moments: Moment[] }[] = []
      for (const [index, { key, task }] of benchmark.tasks.entries())
        for (const policy of ["expert", "random"] as const)
          episodes.push({
            game: path(key),
            moments: await playedEpisode(benchmark.environment, task, policy, new Random(index)),
          })
      const seconds = (performance.now() - started) / 1000
      const told = await playedByAlfworld(join(data, split), episodes)
      expect(told.found).toEqual(Object.keys(paths).map(path).sort())
      const steps = episodes.reduce((sum, { moments }) => sum + moments.length - 1, 0)
      for (const [index, { moments }] of episodes.entries()) expect(told.answers[index]).toEqual(moments.map(asAnswer))
      console.log(
        `${episodes.length} episodes, ${steps} steps, no difference; steps a second: ${(steps / told.seconds).toFixed(1)} there, ` +
          `${Math.round(steps / seconds)} here`,
      )
    } finally {
      await rm(folder, { recursive: true })
    }
  },
  Number.POSITIVE_INFINITY,
)

/** What ALFWorld says at the same step; `help` is left out of our lists. */
function asAnswer({ observation, reward = 0, terminated = false, truncated = false }: Moment): Answer {
  const { text, actions } = observation
  return { text, actions: actions!, score: reward / 10, done: terminated || truncated, won: terminated }
}

async function playedByAlfworld(split: string, episodes: readonly { game: string; moments: readonly Moment[] }[]) {
  const child = spawn(python!, [join(import.meta.dirname, "play_alfworld.py")], { stdio: ["pipe", "pipe", "inherit"] })
  const commands = episodes.map(({ game, moments }) => ({
    game,
    commands: moments.slice(1).map(({ command }) => command),
  }))
  child.stdin.end(JSON.stringify({ split, steps: maxSteps, episodes: commands }))
  const [{ found }, ...played] = (await text(child.stdout))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  return {
    found,
    seconds: played.reduce((sum, { seconds }) => sum + seconds, 0) as number,
    answers: played.map(({ moments }) =>
      (moments as Answer[]).map((answer) => ({ ...answer, actions: answer.actions.filter((one) => one !== "help") })),
    ),
  }
}
