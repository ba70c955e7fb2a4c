// Cost of recording episodes in processor time, memory and bytes: in iterations of each model (as in iteration.mjs), and alone for an iteration of
// the size in papers. Processor time includes compression on other threads.
import { mkdtemp, rm, stat } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { toBatch } from "../modules/entries/advantages.js"
import { gigpo, Random, train } from "../modules/entries/index.js"
import { collectSteps } from "../modules/entries/loop.js"
import { readEpisodes, readRecordedIterations } from "../modules/view/record/read.js"
import { recordEpisodes } from "../modules/view/record/recorder.js"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { completion, makeGroups, members, prompt, tasks, turns } from "./made-episodes.mjs"
import { models, openModel } from "./models.mjs"
import { environmentOf, tokenizer } from "./words.mjs"

const folder = await mkdtemp(join(tmpdir(), "gigpo-bench-"))
const cpuSeconds = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** Records the same iteration repeatedly. Returns the processor seconds and bytes of one recording, and the peak growth of the process. */
async function recordAlone({ groups, credit, steps }, times) {
  const directory = join(folder, "alone")
  const recorder = recordEpisodes({ tokenizer, directory, keep: 2 })
  const before = process.memoryUsage.rss()
  let peak = before
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss())
  }, 2)
  const seconds = []
  for (let iteration = 1; iteration <= times; iteration++) {
    await recorder.start({ iteration: iteration - 1, iterations: times })
    const start = cpuSeconds()
    recorder.episodes(iteration, groups, credit, steps)
    await recorder.end({ iteration })
    seconds.push(cpuSeconds() - start)
  }
  clearInterval(watch)
  const { size } = await stat(join(directory, `episodes/iteration-${times}.episodes`))
  return { seconds: median(seconds.slice(2)), bytes: size, memory: peak - before }
}

const made = makeGroups(1).map((episodes, index) => ({
  task: { seed: index },
  index,
  episodes: episodes.map((episode) => ({
    ...episode,
    steps: episode.steps.map((step) => ({ ...step, entropies: step.logProbs.map(() => Math.random()) })),
  })),
}))
const steps = collectSteps(made.map(({ episodes }) => episodes))
const context = { progress: { iteration: 0, iterations: 1 }, random: new Random(1) }
const paper = await recordAlone({ groups: made, credit: await gigpo().estimate(toBatch(steps), context), steps }, 12)

const alone = join(folder, "alone")
const lap = async (work) => {
  const start = performance.now()
  await work()
  return performance.now() - start
}
const reading = await lap(async () => {
  for await (const _ of readEpisodes(alone, { from: 12 }));
})
const summing = await lap(() => readRecordedIterations(alone, { from: 12 }))

const table = [
  ["model", "iteration, CPU s", "recorded every second one: more, CPU s", "recording alone, CPU s", "share"],
]
const effort = { "1M": 64, "25M": 6 }
for (const [name, { config }] of Object.entries(models)) {
  const policy = await openModel(name)
  const directory = join(folder, name)
  let last
  const observers = [
    recordEpisodes({ tokenizer, directory, every: 2 }),
    { episodes: (_, groups, credit, steps) => (last = { groups, credit, steps }) },
  ]
  const reports = train({
    policy,
    tokenizer,
    environment: environmentOf(config.vocabularySize, 64),
    iterations: effort[name],
    groups: 48,
    groupSize: 8,
    stepsPerUpdate: 384,
    rollout: { maxCompletionTokens: 32, maxSteps: 1 },
    estimator: { name: "grpo" },
    optimizer: { learningRate: 1e-6 },
    evaluation: { every: 0 },
    observers,
  })
  // An iteration is recorded while the next one is played.
  const found = { recorded: [], not: [] }
  let since
  for await (const { iteration } of reports) {
    const now = cpuSeconds()
    if (iteration > 2) found[iteration % 2 === 1 ? "recorded" : "not"].push(now - since)
    since = now
  }
  await policy.dispose()
  const own = await recordAlone(last, 12)
  const [without, recorded] = [median(found.not), median(found.recorded)]
  table.push([
    name,
    without.toFixed(3),
    (recorded - without).toFixed(3),
    own.seconds.toFixed(4),
    `${((100 * own.seconds) / without).toFixed(2)} %`,
  ])
}
await rm(folder, { recursive: true })

await writeResult(
  "recording",
  `# Recording episodes

Processor time of all threads, medians; 48 prompts of 64 tokens, 8 replies of 32 to each, GRPO.
${describeMachine()}

${markdownTable(table)}

Alone, an iteration of ${tasks} tasks × ${members} episodes × ${turns} steps of ${prompt} + ${completion} tokens, with observations of 500 characters, random tokens,
log-probabilities and entropies: ${paper.seconds.toFixed(3)} CPU s, ${(paper.bytes / (tasks * members * turns)).toFixed(0)} bytes a step, and the process at most ${(paper.memory / 2 ** 20).toFixed(0)} MiB larger than before. To read all
of it takes ${reading.toFixed(0)} ms, its summary ${summing.toFixed(1)} ms.`,
)
