// Cost of 128 concurrent ALFWorld episodes relative to training: one GiGPO iteration of a small model with all calls of the environment timed, and
// the memory of 128 open episodes. Starts are timed one after the other, because in the iteration they wait for each other.
// With GIGPO_ALFWORLD_DATA, a folder of real games, these are measured too.

import { rm } from "node:fs/promises"
import { setTimeout } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { initializeModel, NativePolicy, Random, Tokenizer, train } from "gigpo"
import { alfworld } from "gigpo/environments/alfworld"
import { describeMachine, markdownTable, writeResult } from "./machine.mjs"

setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc")
const [groups, groupSize] = [16, 8]
const data = process.env.GIGPO_ALFWORLD_DATA
const worlds = [["generated households, large", { size: "large" }], ...(data ? [["real games", { data }]] : [])]
const table = [
  [
    "games",
    "steps",
    "step, ms",
    "prompt and parse, ms",
    "start, ms",
    "iteration, s",
    "steps' share",
    "with all else",
    "memory, MB",
  ],
]
for (const [name, options] of worlds) table.push([name, ...(await measure(options))])
await writeResult(
  "episodes",
  `# 128 ALFWorld episodes at once

One GiGPO iteration (${groups} groups of ${groupSize}, up to 50 steps) of a model of about 1 M weights on the CPU: the faster the model,
the larger the environment's share. The weights are random, so each completion is replaced by a random admissible command, and few episodes end
before 50 steps. Starts include loading 16 games, one per group. Memory is that of 128 episodes in progress, including their games.
${describeMachine()}

${markdownTable(table)}`,
)

async function measure(options) {
  const environment = await alfworld({ rules: false, thinking: "off", history: 1, ...options })
  const clock = { step: 0, text: 0, steps: 0 } // seconds, seconds, count
  const directory = "runs/bench-episodes"
  await initializeModel({ directory, environment, overwrite: true, options: { maxPositions: 2048 } })
  const policy = await NativePolicy.open(directory)
  const tokenizer = await Tokenizer.open(directory)
  const iteration = { iterations: 1, groups, groupSize, rollout: { maxCompletionTokens: 16 } }
  let seconds = 0
  for await (const { metrics } of train({
    policy,
    tokenizer,
    environment: timed(environment, clock),
    ...iteration,
  }))
    seconds = metrics["time/iteration"]
  await policy.dispose()
  await tokenizer.dispose()
  await rm(directory, { recursive: true })
  const { bytes, startSeconds } = await holdEpisodes(await alfworld(options))
  const milliseconds = (total, count) => ((1000 * total) / count).toFixed(3)
  const share = (part) => `${((100 * part) / seconds).toFixed(1)} %`
  return [
    clock.steps.toLocaleString("en"),
    milliseconds(clock.step, clock.steps),
    milliseconds(clock.text, clock.steps),
    milliseconds(startSeconds, groups * groupSize),
    seconds.toFixed(1),
    share(clock.step),
    share(clock.step + clock.text + startSeconds),
    (bytes / 1e6).toFixed(0),
  ]
}

/** Environment whose calls are timed. Calls compute before they first wait, or wait only for files. */
function timed(environment, clock) {
  const call = (act) => {
    const started = performance.now()
    const result = act()
    clock.text += (performance.now() - started) / 1000
    return result
  }
  return {
    ...environment,
    prompt: (...all) => call(() => environment.prompt(...all)),
    parse: (...all) => call(() => environment.parse(...all)),
    async start(task, context) {
      const episode = await environment.start(task, context)
      const random = context.random.derive("commands")
      let { actions } = episode.first
      return {
        first: episode.first,
        async step() {
          const action = actions[random.below(actions.length)]
          const started = performance.now()
          const answer = episode.step(action) // computes before it returns; the rest is waiting
          clock.step += (performance.now() - started) / 1000
          clock.steps++
          const result = await answer
          actions = result.observation.actions
          return result
        },
        [Symbol.asyncDispose]: () => episode[Symbol.asyncDispose](),
      }
    },
  }
}

/** Memory in bytes of 128 episodes in progress, eight for each of 16 tasks, and the seconds to start them. */
async function holdEpisodes(environment) {
  const held = async () => {
    // Some objects are freed only in a second collection, or after their promises have settled.
    for (let round = 0; round < 4; round++) {
      collectGarbage()
      await setTimeout(20)
    }
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = await held()
  const context = { signal: new AbortController().signal, random: new Random(1) }
  const episodes = []
  let startSeconds = 0
  for (const task of environment.tasks("train", new Random(2))) {
    for (let member = 0; member < groupSize; member++) {
      const started = performance.now()
      const episode = await environment.start(task, context)
      startSeconds += (performance.now() - started) / 1000
      const random = new Random(member)
      for (let step = 0, now = episode.first; step < 25; step++) {
        const result = await episode.step(now.actions[random.below(now.actions.length)])
        if (result.terminated) break
        now = result.observation
      }
      episodes.push(episode)
    }
    if (episodes.length === groups * groupSize) break
  }
  const bytes = (await held()) - before
  for (const episode of episodes) await episode[Symbol.asyncDispose]()
  return { bytes, startSeconds }
}
