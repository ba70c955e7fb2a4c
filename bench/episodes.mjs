// What 128 ALFWorld episodes at once cost beside training: one GiGPO iteration of a small model with every call into the environment
// timed, and the memory of 128 live episodes (starts are timed one after the other: in the iteration they wait for one another). GIGPO_ALFWORLD_DATA names a folder of real games to be measured too.

import { rm } from "node:fs/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { alfworld, initialize, NativePolicy, Random, Tokenizer, train } from "gigpo"
import { describeMachine, markdownTable, writeResult } from "./machine.mjs"

setFlagsFromString("--expose-gc")
const collectGarbage = runInNewContext("gc")
const [groups, groupSize] = [16, 8]
const data = process.env.GIGPO_ALFWORLD_DATA
const worlds = [["generated households, large", { size: "large" }], ...(data ? [["real games", { data }]] : [])]
const table = [["games", "steps", "ms a step", "environment, s", "iteration, s", "share", "memory of 128 episodes, MB"]]
for (const [name, options] of worlds) table.push([name, ...(await measure(options))])
await writeResult(
  "episodes",
  `# 128 ALFWorld episodes at once

One GiGPO iteration (${groups} groups of ${groupSize}, up to 50 steps) of a model of about 1 M weights on the CPU: the faster the model,
the larger the environment's share. Times are of start, step, prompt and parse together, a game's load included.
${describeMachine()}

${markdownTable(table)}`,
)

async function measure(options) {
  const environment = await alfworld({ rules: false, thinking: "off", history: 1, ...options })
  const clock = { seconds: 0, steps: 0 }
  const directory = "runs/bench-episodes"
  await initialize({ directory, environment, overwrite: true, options: { maxPositions: 2048 } })
  const policy = await NativePolicy.open(directory)
  const tokenizer = await Tokenizer.open(directory)
  const iteration = { iterations: 1, groups, groupSize, rollout: { maxReplyTokens: 16 } }
  let seconds = 0
  for await (const { metrics } of train({
    policy,
    tokenizer,
    environment: timed(environment, clock),
    options: iteration,
  }))
    seconds = metrics["seconds/iteration"]
  await policy.dispose()
  await tokenizer.dispose()
  await rm(directory, { recursive: true })
  const { bytes, startSeconds } = await holdEpisodes(environment)
  clock.seconds += startSeconds
  return [
    clock.steps.toLocaleString("en"),
    ((1000 * clock.seconds) / clock.steps).toFixed(3),
    clock.seconds.toFixed(2),
    seconds.toFixed(1),
    `${((100 * clock.seconds) / seconds).toFixed(1)} %`,
    (bytes / 1e6).toFixed(0),
  ]
}

/** The environment with a stopwatch on its calls. They compute before they first wait, or wait for files alone. */
function timed(environment, clock) {
  const call = async (act) => {
    const started = performance.now()
    try {
      return await act()
    } finally {
      clock.seconds += (performance.now() - started) / 1000
    }
  }
  const callNow = (act) => {
    const started = performance.now()
    const result = act()
    clock.seconds += (performance.now() - started) / 1000
    return result
  }
  return {
    ...environment,
    prompt: (...all) => callNow(() => environment.prompt(...all)),
    parse: (...all) => callNow(() => environment.parse(...all)),
    async start(task, context) {
      const episode = await environment.start(task, context)
      return {
        first: episode.first,
        step(action) {
          clock.steps++
          return call(() => episode.step(action))
        },
        [Symbol.asyncDispose]: () => episode[Symbol.asyncDispose](),
      }
    },
  }
}

/** Bytes that stay with 128 episodes in mid-game, sixteen tasks of eight, and the seconds it took to start them. */
async function holdEpisodes(environment) {
  const held = () => {
    collectGarbage()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const before = held()
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
  const bytes = held() - before
  for (const episode of episodes) await episode[Symbol.asyncDispose]()
  return { bytes, startSeconds }
}
