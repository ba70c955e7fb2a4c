import { NativePolicy } from "../../engine/native/native-policy.ts"
import type { Message } from "../../environment/environment.ts"
import { newModel } from "../../model-files/families.ts"
import { randomActions, withMessages } from "../../rollout/choosers.ts"
import { startEpisode } from "../../rollout/environment-episode.ts"
import { streamExpert } from "../../rollout/expert.ts"
import { drawnTasks } from "../../rollout/tasks.ts"
import { playTurns } from "../../rollout/turns.ts"
import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import type { Config } from "../config/config.ts"
import type { openConfiguredEnvironment } from "../model.ts"
import { distinctFeatures, type ImageLengths, type ImageTokens } from "./images.ts"
import { modelSizes } from "./sizes.ts"

type Environment = Awaited<ReturnType<typeof openConfiguredEnvironment>>

/** Mean lengths of an episode and its steps, and their source. */
export interface Lengths {
  readonly steps: number
  readonly promptTokens: number
  /** Tokens of a prompt that are computed, if the prefix that it shares with another prompt is computed once. Absent: all. */
  readonly newTokens?: number
  readonly completionTokens: number
  readonly source: string
  /** Absent if no prompt has images. */
  readonly images?: ImageLengths
  /** Seconds per episode with the expert; absent if no expert played. */
  readonly secondsPerEpisode?: number
}

/** Tokenizer of the measurement, with the chat template. */
export interface Counter {
  /** Tokens of a prompt, or parts of its text of the length of a token. */
  prompt(messages: readonly Message[]): Promise<Tokens>
  /** Number of tokens of a completion, with the end token. */
  completion(text: string): number
  /** Numbers of image tokens, for a vision-language model. */
  readonly images?: ImageTokens
}

type Tokens = ArrayLike<number | string>

/** Episodes whose lengths are measured, and groups whose common prompts are. */
const [measuredEpisodes, measuredGroups] = [16, 2]
/** Seconds after which no further episode is started, of either. */
const patience = 5

/** Measures lengths on a few training tasks, played by the environment's expert or at random. */
export async function measureLengths(
  config: Config,
  environment: Environment,
  counter: Counter,
  signal: AbortSignal,
): Promise<Lengths> {
  const random = new Random(config.seed).derive("estimate")
  const { environmentTimeout, maxSteps, maxCompletionTokens } = config.training.rollout
  const play = environment.expert ? streamExpert : playAtRandom
  const started = performance.now()
  const played: Tokens[][] = []
  let completion = 0
  using tasks = drawnTasks(environment, "train", random.derive("tasks"))
  for (const index of within(measuredEpisodes)) {
    const task = tasks.next()
    if (task === undefined) break
    const prompts: Tokens[] = []
    const setup = { environment, task, random: random.derive("episode", index), environmentTimeout, maxSteps, signal }
    for await (const step of play(setup)) {
      prompts.push(await counter.prompt(step.messages))
      completion += step.completion === undefined ? maxCompletionTokens : counter.completion(step.completion)
    }
    played.push(prompts)
  }
  const seconds = (performance.now() - started) / 1000
  const prompts = played.flat()
  const steps = prompts.length
  if (steps === 0)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `No step of ${environment.name} could be played: give --prompt-tokens, --completion-tokens and --steps.`,
    )
  const source = environment.expert
    ? `measured on ${played.length} episodes of the expert, which may be shorter than the model's`
    : `measured on ${played.length} episodes of random actions; completions assumed to have the maximum length`
  const promptTokens = lengthOf(prompts) / steps
  const groups = await groupPrompts(config, environment, counter, Math.ceil(steps / played.length), signal)
  return {
    steps: steps / played.length,
    promptTokens,
    newTokens: groups?.length
      ? (promptTokens * distinctTokens(groups)) / lengthOf(groups)
      : newTokensOf(played, config.training.groupSize),
    completionTokens: completion / steps,
    source,
    ...imagesOf(groups?.length ? groups : prompts, counter),
    ...(environment.expert && { secondsPerEpisode: seconds / played.length }),
  }
}

function imagesOf(prompts: readonly Tokens[], { images }: Counter): Pick<Lengths, "images"> {
  const features = distinctFeatures(prompts)
  if (!images || features === 0) return {}
  return { images: { newFeatures: features / prompts.length, patches: images.patches } }
}

/**
 * Prompts of a few groups whose episodes choose at random among the actions that observations list, since a model's episodes of one group differ
 * where an expert's are equal. Undefined if no actions are listed.
 */
async function groupPrompts(
  config: Config,
  environment: Environment,
  counter: Counter,
  maxSteps: number,
  signal: AbortSignal,
) {
  const random = new Random(config.seed).derive("estimate groups")
  const { groupSize, rollout } = config.training
  const prompts: Tokens[] = []
  using tasks = drawnTasks(environment, "train", random.derive("tasks"))
  let task: unknown
  for (const index of within(measuredGroups * groupSize)) {
    if (index % groupSize === 0) task = tasks.next()
    if (task === undefined) break
    const setup = { environment, task, random: random.derive("episode", index), maxSteps, signal }
    for await (const { messages, actions } of playAtRandom({
      ...setup,
      environmentTimeout: rollout.environmentTimeout,
    })) {
      if (!actions?.length) return undefined
      prompts.push(await counter.prompt(messages))
    }
  }
  return prompts
}

/** Tokens per prompt that are computed if the episodes of a group have their first prompt in common, and no other. */
function newTokensOf(played: readonly (readonly Tokens[])[], groupSize: number): number {
  const repeated = (1 - 1 / groupSize) * distinctTokens(played.flatMap((prompts) => prompts.slice(0, 1)))
  return (distinctTokens(played.flat()) - repeated) / played.flat().length
}

function lengthOf(prompts: readonly Tokens[]): number {
  return prompts.reduce((sum, { length }) => sum + length, 0)
}

/** Indices of `count` episodes. Ends early when `patience` is over. */
function* within(count: number): Generator<number> {
  const started = performance.now()
  for (let index = 0; index < count && performance.now() - started < 1000 * patience; index++) yield index
}

/** Number of tokens, each common prefix counted once: the nodes of the prefix tree of these sequences. */
export function distinctTokens(sequences: readonly Tokens[]): number {
  const sorted = sequences.toSorted((a, b) => {
    const at = commonPrefix(a, b)
    return at === a.length ? -1 : at === b.length ? 1 : a[at]! < b[at]! ? -1 : 1
  })
  // In sorted order, the longest prefix shared with any earlier sequence is shared with the one before.
  return sorted.reduce((sum, one, at) => sum + one.length - (at === 0 ? 0 : commonPrefix(sorted[at - 1]!, one)), 0)
}

function commonPrefix(a: Tokens, b: Tokens): number {
  let length = 0
  while (length < a.length && length < b.length && a[length] === b[length]) length++
  return length
}

type RandomSetup = Parameters<typeof streamExpert>[0]

async function* playAtRandom({ maxSteps, ...setup }: RandomSetup) {
  await using episode = await startEpisode(setup)
  const choose = withMessages(randomActions(setup.random.derive("actions")))
  for await (const { choice, observation } of playTurns(episode, choose, { maxTurns: maxSteps }))
    yield { messages: choice.messages, completion: undefined, actions: observation.actions }
}

/** Rates in operations and bytes per second. */
export interface Rates {
  readonly operations: number
  readonly bandwidth: number
}

const probe = newModel({
  vocabularySize: 512,
  hiddenSize: 512,
  intermediateSize: 1536,
  layers: 4,
  heads: 8,
  keyValueHeads: 8,
  headSize: 64,
  maxPositions: 512,
})

/** Measures this CPU: a forward pass of the native engine and a memory copy. Takes about a second. */
export async function measureCpu(precision: "float32" | "bfloat16", threads: number | undefined): Promise<Rates> {
  await using policy = await NativePolicy.create(probe, new Random(1), {
    device: "cpu",
    precision,
    training: false,
    ...(threads !== undefined && { threads }),
  })
  const tokens = Int32Array.from({ length: probe.maxPositions }, (_, i) => i % probe.vocabularySize)
  const { body, head } = modelSizes(probe)
  const pass = 2 * (body + head) * tokens.length
  const operations = pass / (await quickest(() => policy.logits(tokens)))
  const [from, to] = [new Uint8Array(2 ** 27).fill(1), new Uint8Array(2 ** 27)]
  const bandwidth = (2 * from.length) / (await quickest(async () => to.set(from)))
  return { operations, bandwidth }
}

/** Shortest of three runs, in seconds. */
async function quickest(work: () => Promise<unknown>): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 3; i++) {
    const started = performance.now()
    await work()
    best = Math.min(best, (performance.now() - started) / 1000)
  }
  return best
}
