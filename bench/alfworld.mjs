// Time of ALFWorld's engine: reading a game, starting it, and steps of random commands with the list of the next admissible commands.
// Uses generated households of ALFWorld's size. With GIGPO_ALFWORLD_DATA, a folder json_2.1.1/<split>, real games are measured too.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Random } from "../modules/entries/index.js"
import { Game } from "../modules/environment/alfworld/game.js"
import { readGameFile } from "../modules/environment/alfworld/game-file.js"
import { generateHousehold } from "../modules/environment/alfworld/generate/generate.js"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"

const [count, passes, steps] = [60, 3, 50]
const data = process.env.GIGPO_ALFWORLD_DATA
const table = [["games", "kB a game", "load, ms", "start, ms", "step, ms", "95 % of steps below, ms"]]
table.push(["generated households, large", ...measure(Array.from({ length: count }, (_, seed) => generatedJson(seed)))])
if (data) table.push(["real games", ...measure(realJsons(data))])

await writeResult(
  "alfworld",
  `# ALFWorld's engine

${count} games, ${steps} random commands each; medians of the last of ${passes} passes. A load reads the JSON and the three texts in it; a
step executes a command, writes the observation, finds and sorts the next admissible commands, and checks the goal.
${describeMachine()}

${markdownTable(table)}`,
)

function generatedJson(seed) {
  const { domain, grammar, problem } = generateHousehold(seed, { size: "large" })
  return JSON.stringify({ pddl_domain: domain, grammar, pddl_problem: problem, solvable: true })
}

function realJsons(folder) {
  const paths = readdirSync(folder, { recursive: true }).filter((path) => path.endsWith("game.tw-pddl"))
  const picked = new Random(1).shuffled(paths.sort()).map((path) => readFileSync(join(folder, path), "utf8"))
  return picked.filter((json) => readGameFile(json, folder).solvable).slice(0, count)
}

function measure(jsons) {
  let times
  for (let pass = 0; pass < passes; pass++) {
    times = { load: [], start: [], step: [] }
    for (const [index, json] of jsons.entries()) play(json, new Random(index), times)
  }
  const size = jsons.reduce((sum, json) => sum + json.length, 0) / jsons.length / 1000
  const slow = times.step.sort((a, b) => a - b)[Math.floor(times.step.length * 0.95)]
  return [
    size.toFixed(0),
    ...[times.load, times.start, times.step].map((list) => median(list).toFixed(3)),
    slow.toFixed(3),
  ]
}

function play(json, random, times) {
  const clock = (list, act) => {
    const started = performance.now()
    const result = act()
    list.push(performance.now() - started)
    return result
  }
  const game = clock(times.load, () => Game.parse(readGameFile(json, "a game")))
  const world = clock(times.start, () => game.start())
  let commands = world.admissible()
  for (let step = 0; step < steps && !world.won; step++) {
    const command = commands[random.below(commands.length)]
    commands = clock(times.step, () => {
      world.step(command)
      return world.won ? [] : world.admissible()
    })
  }
}
