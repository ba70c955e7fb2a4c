// Data available to an estimator in each environment and configuration: share of compared steps, length of episodes relative to the expert's,
// wasted steps in successful episodes, and effect of the step limit. Episodes are played by experts with some random actions, or by a model.
//   node bench/paper/shares.mjs [configuration …] [--groups 16] [--haste 0.3 --haste 0.6] [--model <folder> [--temperature 1] [--tokens 24]]
import { parseArgs } from "node:util"
import { openConfiguredEnvironment } from "../../modules/cli/config/modules.js"
import { loadConfig } from "../../modules/cli/config/resolve.js"
import { anchorCoverage } from "../../modules/entries/evaluation.js"
import { NativePolicy, Random, rollout, Tokenizer } from "../../modules/entries/index.js"
import { expertCompletions, randomActions } from "../../modules/rollout/choosers.js"
import { rolloutDefaults } from "../../modules/rollout/options.js"
import { playBy } from "../../modules/rollout/play-by.js"
import { takeTasks } from "../../modules/rollout/tasks.js"
import { expertLengths } from "../../modules/sft/expert-lengths.js"
import { describeMachine, markdownTable, writeResult } from "../machine.mjs"
import { sets } from "./cells.mjs"
import { worlds as own, paperWorlds } from "./worlds.mjs"

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    groups: { type: "string", default: "16" },
    haste: { type: "string", multiple: true, default: ["0.3", "0.6"] },
    model: { type: "string" },
    temperature: { type: "string", default: "1" },
    tokens: { type: "string", default: "24" }, // maximum completion length
  },
})
const worlds = { ...own, ...paperWorlds }
const names = positionals.length > 0 ? positionals : Object.keys(worlds)
const groupSize = 8
const random = new Random(1)
const players = values.model ? [await modelPlayer(values.model)] : values.haste.map(hastyPlayer)

const percent = (share) => (share === undefined ? "" : (100 * share).toFixed(1))
const header = [
  "world",
  "player",
  "success",
  "steps",
  "nonzero",
  "across episodes",
  "length",
  "loops",
  "truncated",
  "near limit",
]
const table = [header]
for (const name of names) {
  const world = worlds[name]
  const environment = await open(world)
  const tasks = takeTasks(environment, "train", random.derive(name), Number(values.groups))
  const knowing = world.guide ? await open(world, world.guide) : environment
  const bare = tasks.map((task, index) => ({ task, index, episodes: [] }))
  const expertSteps = await expertLengths(knowing, bare, { ...rolloutDefaults, random })
  for (const player of players) {
    const groups = await player.play(environment, tasks)
    const report = anchorCoverage(groups, { expertSteps, frequent: 0 })
    const episodes = groups.flatMap((group) => group.episodes)
    const success = episodes.filter(({ metrics }) => metrics.success === 1).length / episodes.length
    const shares = [report.nonzero, report.nonzeroAcross].map(percent)
    const ends = [report.loopSteps, report.truncated, report.nearLimit].map(percent)
    const steps = (report.steps / report.episodes).toFixed(1)
    table.push([name, player.name, percent(success), steps, ...shares, report.length?.toFixed(2) ?? "", ...ends])
    console.error(table.at(-1).join("  "))
  }
}
await Promise.all(players.map((player) => player.close?.()))

await writeResult(
  "paper-shares",
  `# What an estimator can use

${values.groups} tasks × ${groupSize} episodes; in percent, but for steps and length. ${describeMachine()}
nonzero: steps with a step advantage; across episodes: those in step groups with steps of two or more episodes; length: steps relative to those of
the expert, if possible one that knows the world; loops: steps on loops in successful episodes; truncated: episodes that the limit ended; near limit: successes in the
last fifth of the step limit.

${markdownTable(table)}`,
)

/** @param besides additional settings */
async function open({ config, set }, besides) {
  return await openConfiguredEnvironment(await loadConfig(config, ["model=none", ...sets(set, besides)]))
}

/** Expert that takes a random possible action with probability `share`, and where it has no completion. */
function hastyPlayer(share) {
  const choose = (expert, dice) => {
    const [anything, knowing] = [randomActions(dice), expertCompletions(expert)]
    return async (situation) => {
      const choice = dice.uniform() < Number(share) ? "stopped" : await knowing(situation)
      return choice === "stopped" ? await anything(situation) : choice
    }
  }
  const member = async (environment, task, own) => {
    const setup = { ...rolloutDefaults, environment, task, random: own.derive("environment") }
    return await playBy(setup, choose(environment.expert(task), own.derive("haste", share)))
  }
  return {
    name: `hasty ${share}`,
    async play(environment, tasks) {
      const groups = []
      for (const [index, task] of tasks.entries()) {
        const episodes = []
        for (let i = 0; i < groupSize; i++) episodes.push(await member(environment, task, random.derive(index, i)))
        groups.push({ task, index, episodes })
      }
      return groups
    },
  }
}

async function modelPlayer(directory) {
  const [policy, tokenizer] = [await NativePolicy.open(directory, { training: false }), await Tokenizer.open(directory)]
  const asked = { temperature: Number(values.temperature), maxCompletionTokens: Number(values.tokens) }
  const sampling = { ...rolloutDefaults, ...asked, maxPositions: policy.maxPositions }
  return {
    name: directory,
    play: async (environment, tasks) =>
      (await rollout({ ...sampling, policy, tokenizer, environment, tasks, groupSize, random })).groups,
    close: async () => await Promise.all([policy.dispose(), tokenizer.dispose()]),
  }
}
