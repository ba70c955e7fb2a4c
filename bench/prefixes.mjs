// Savings by prefix sharing: training steps on groups of scripted ALFWorld episodes in each layout of sequences, with and without prefix
// sharing, in alternating turns.
//   npm run bench -- prefixes
import { rm } from "node:fs/promises"
import { initializeModel, NativePolicy, Random, Tokenizer } from "gigpo"
import { stepSequence } from "gigpo/engine"
import { alfworld } from "gigpo/environments/alfworld"
import { clippedSurrogate } from "gigpo/losses"
import { describeMachine, markdownTable, median, writeResult } from "./machine.mjs"
import { models } from "./models.mjs"

const [groupSize, mostSteps, skill] = [8, 30, 0.8]
const kinds = {
  "steps, the last 2 turns": { rules: true, thinking: "required", history: 2 },
  "steps, full history": { rules: true, thinking: "required", history: "all" },
  "steps, full history, bare prompt": { rules: false, thinking: "off", history: "all" },
  conversations: { rules: false, thinking: "off", history: 0, conversation: true },
  "the same, a row each turn": { rules: false, thinking: "off", history: 0, conversation: true, apart: true },
}
const sizes = { "1M": { groups: 1, turns: 2 } }
const loss = clippedSurrogate().native({ iteration: 0, iterations: 1 })

const directory = "runs/bench-prefixes"
await initializeModel({ directory, environment: await alfworld(), overwrite: true, options: { maxPositions: 4096 } })
const tokenizer = await Tokenizer.open(directory)
const table = [
  [
    "rows",
    "model",
    "rows, tokens",
    "not computed twice",
    "by equal prompts alone",
    "alone, s",
    "shared, s",
    "gain",
    "rows' tokens over computed ones",
  ],
]
for (const [kind, options] of Object.entries(kinds)) {
  const groups = []
  for (let group = 0; group < sizes["1M"].groups; group++) groups.push(await playGroup(options, group))
  for (const [name, { groups: count, turns }] of Object.entries(sizes)) {
    const rows = groups.slice(0, count).flat()
    table.push([kind, name, ...(await measure(name, rows, turns))])
    console.error(table.at(-1).join(" | "))
  }
}
await rm(directory, { recursive: true })
await writeResult(
  "prefixes",
  `# Prefix sharing

Groups of ${groupSize} episodes of generated ALFWorld households, at most ${mostSteps} steps each. The script takes the expert's command with
probability ${skill}, else a random one, so the episodes of a group diverge. A step is a row with one segment and a new prompt. A conversation is a
row with many segments; for comparison, its turns are also measured as rows whose prompts repeat. Seconds are processor time of all threads, which
other work on the machine hardly affects, of one training step (clipped surrogate, forward and backward, micro-batches of the default size) over
all rows, fp32, medians of turns. Rows without advantage are included.
${describeMachine()}

${markdownTable(table)}`,
)

/** Sequences of one group. */
async function playGroup({ conversation = false, apart = false, ...options }, group) {
  const environment = await alfworld({ size: "large", maxSteps: mostSteps, ...options })
  const [task] = environment.tasks("train", new Random(group))
  const rows = []
  for (let member = 0; member < groupSize; member++) {
    const random = new Random(group).derive(member)
    const context = { signal: new AbortController().signal, random }
    const episode = await environment.start(task, context)
    const expert = environment.expert(task)
    const history = []
    const talk = { tokens: [], segments: [] }
    for (let now = episode.first, step = 0; step < mostSteps; step++) {
      const best = expert.complete(now, history)
      if (best === undefined) break
      const command = environment.parse(best, now).action
      const action = random.uniform() < skill ? command : now.actions[random.below(now.actions.length)]
      const completion = best.replace(command, action)
      const { tokens: prompt } = await tokenizer.encodeChat(environment.prompt(task, history, now))
      const sampled = await tokenizer.encode(completion)
      if (conversation) {
        talk.tokens.push(...prompt)
        talk.segments.push({ start: talk.tokens.length, length: sampled.length, ...credit(random, sampled.length) })
        talk.tokens.push(...sampled)
      } else {
        rows.push(stepSequence(Int32Array.from(prompt), Int32Array.from(sampled), credit(random, sampled.length)))
      }
      const { observation, terminated } = await episode.step(action)
      history.push({ observation: now, completion, action })
      if (terminated) break
      now = observation
    }
    if (!conversation) continue
    const tokens = Int32Array.from(talk.tokens)
    if (apart)
      for (const segment of talk.segments)
        rows.push({ tokens: tokens.slice(0, segment.start + segment.length), segments: [segment] })
    else rows.push({ tokens, segments: talk.segments })
  }
  return rows
}

function credit(random, length) {
  return { advantage: random.uniform() - 0.5, logProbs: new Float32Array(length).fill(-7) }
}

async function measure(name, rows, turns) {
  const { vocabularySize } = tokenizer
  const config = { ...models[name].config, vocabularySize, maxPositions: 4096 }
  const open = (sharePrefixes) => NativePolicy.create(config, new Random(0), { sharePrefixes })
  const policies = [await open(false), await open(true)]
  const times = [[], []]
  let report
  for (let turn = 0; turn < turns; turn++) {
    for (const [index, policy] of policies.entries()) {
      const started = process.cpuUsage()
      report = await policy.forwardBackward(rows, loss)
      const { user, system } = process.cpuUsage(started)
      times[index].push((user + system) / 1e6)
    }
  }
  for (const policy of policies) await policy.dispose()
  const all = report.computedTokens + report.reusedTokens
  const [alone, shared] = times.map(median)
  const percent = (tokens) => `${((100 * tokens) / all).toFixed(1)} %`
  return [
    `${rows.length.toLocaleString("en")}, ${all.toLocaleString("en")}`,
    percent(report.reusedTokens),
    percent(equalPrompts(rows)),
    ...[alone, shared].map((seconds) => seconds.toFixed(2)),
    `${(alone / shared).toFixed(2)}×`,
    `${(all / report.computedTokens).toFixed(2)}×`,
  ]
}

/** Number of tokens that are saved if only entirely equal prompts are computed once. */
function equalPrompts(rows) {
  const seen = new Set()
  let tokens = 0
  for (const { tokens: row, segments } of rows) {
    const prompt = row.subarray(0, segments[0].start)
    const key = prompt.join()
    if (seen.has(key)) tokens += prompt.length
    seen.add(key)
  }
  return tokens
}
