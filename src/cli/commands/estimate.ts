import { type Command, InvalidArgumentError } from "commander"
import { deviceReport } from "../../device.ts"
import { readPolicyConfig } from "../../engine/native/native-policy.ts"
import {
  chooseDevice,
  deviceMemory,
  type MemoryPlan,
  memoryPlan,
  resolvePolicyOptions,
} from "../../engine/native/options.ts"
import { GigpoError } from "../../errors.ts"
import { unlessAborted } from "../../linked-abort.ts"
import type { ModelConfig } from "../../model-files/model-config.ts"
import { Tokenizer } from "../../tokenizer/tokenizer.ts"
import { needsOf } from "../../training/make.ts"
import { type ConfigArguments, configCommand } from "../arguments.ts"
import { type Config, trainingOptions } from "../config/config.ts"
import { configuredTraining } from "../config/modules.ts"
import { loadConfig } from "../config/resolve.ts"
import { type Card, cards, findCard, requireCard } from "../estimate/cards.ts"
import { type Lengths, measureCpu, measureLengths } from "../estimate/measure.ts"
import { floorSeconds, iterationWork, modelSizes, type Part } from "../estimate/work.ts"
import { openConfiguredEnvironment } from "../model.ts"
import { formatDuration, formatNumber } from "../terminal/format.ts"
import { interruptible } from "../terminal/interrupt.ts"

interface EstimateArguments extends ConfigArguments {
  readonly device?: "cpu" | "cuda"
  readonly card?: Card
  readonly memory?: number
  readonly promptTokens?: number
  readonly replyTokens?: number
  readonly steps?: number
  readonly peak: number
  readonly json?: boolean
}

/** Exit code where the model does not fit. */
const tooLarge = 3

export function estimateCommand(): Command {
  return configCommand("estimate", "say what memory and time training would take")
    .description(
      "Counts the memory that training takes on a device, which need not be there, and the operations and bytes of one " +
        "iteration. For a GPU it gives floors, the times that the card's datasheet does not allow to go below, and what they " +
        "come to at an assumed share of its peak; on the CPU it measures this machine's rates. What prompts share is counted as " +
        "if it were computed each time. Exit code 3 when memory does not suffice.",
    )
    .option("--device <name>", "cpu or cuda instead of the configured one", parseDevice)
    .option(
      "--card <name>",
      `the GPU: ${cards.map(({ name }) => name).join(", ")}; default this machine's`,
      requireCard,
    )
    .option(
      "--memory <size>",
      "what the device has, e.g. 80GB or 24GiB; default the card's, or this machine's",
      parseMemory,
    )
    .option("--prompt-tokens <count>", "mean length of a prompt; default: measured on a few episodes", parseCount)
    .option("--reply-tokens <count>", "mean length of a reply, likewise", parseCount)
    .option("--steps <count>", "mean steps of an episode, likewise", parseCount)
    .option("--peak <percent>", "share of a GPU's peak that is assumed besides its floor", parsePercent, 40)
    .option("--json", "print one JSON line")
    .action((file, options) =>
      interruptible((signal) => unlessAborted(signal, () => runEstimate(file, options, signal))),
    )
}

async function runEstimate(file: string, options: EstimateArguments, signal: AbortSignal): Promise<void> {
  const config = await loadConfig(file, options.set)
  const needs = needsOf(await configuredTraining(config))
  const training = trainingOptions(config, needs)
  const device = options.device ?? (options.card ? "cuda" : chooseDevice(training))
  const policy = { ...training, device }
  const model = await readPolicyConfig(config.model)
  const positions = { ...model, maxPositions: config.maxPositions ?? model.maxPositions }
  const available = options.memory ?? options.card?.memoryBytes ?? deviceMemory(policy)
  const { plan, refusal } = planMemory((bytes) => memoryPlan(positions, policy, bytes), available)

  const lengths = await findLengths(config, options, signal)
  const { groups, groupSize, batchRows, batchEpisodes, updates, epochs, rollout, critic } = config.training
  const episodes = groups * groupSize
  const updatesOf = (size: number) => Math.ceil((episodes * lengths.steps) / size)
  const { precision, moments, loraRank } = resolvePolicyOptions(policy)
  const work = {
    ...lengths,
    episodes,
    concurrency: rollout.concurrency,
    epochs,
    updates: updates ?? (batchEpisodes === undefined ? updatesOf(batchRows) : Math.ceil(episodes / batchEpisodes)),
    recomputed: needs.has("old"),
    reference: policy.reference ?? false,
    critic: policy.critic ? { epochs: critic.epochs, updates: updatesOf(critic.batchRows) } : undefined,
  }
  const bytesPerNumber = precision === "bfloat16" ? 2 : 4
  const how = {
    bytesPerNumber,
    recompute: plan.recompute,
    momentBytes: moments === "bfloat16" ? 2 : 4,
    loraRank,
  } as const
  const parts = iterationWork(positions, work, how)
  const speeds = await findSpeeds(device, precision, config, options)

  const numbers = modelSizes(positions, loraRank).cacheNumbersPerToken
  const cacheBytesPerToken = numbers * bytesPerNumber
  const result: Estimate = {
    cacheBytesPerToken,
    device,
    precision,
    model: positions,
    plan,
    available,
    refusal,
    lengths,
    parts,
    speeds,
  }
  if (options.json) process.stdout.write(`${JSON.stringify(toJson(result, options.peak))}\n`)
  else for (const line of describe(result, work.episodes, options.peak)) process.stdout.write(`${line}\n`)
  if (refusal !== undefined) process.exitCode = tooLarge
}

/** How fast something is: by a datasheet, or as measured here. */
interface Speed {
  readonly name: string
  readonly source: "datasheet" | "measured"
  readonly operations: number
  readonly bandwidth: number
}

interface Estimate {
  readonly device: "cpu" | "cuda"
  readonly precision: "float32" | "bfloat16"
  readonly model: ModelConfig
  readonly plan: MemoryPlan
  readonly available: number | undefined
  readonly refusal: string | undefined
  readonly cacheBytesPerToken: number
  readonly lengths: Lengths
  readonly parts: readonly Part[]
  readonly speeds: readonly Speed[]
}

/** The plan, of what there is if that suffices; else why not. */
function planMemory(
  plan: (available?: number) => MemoryPlan,
  available: number | undefined,
): { plan: MemoryPlan; refusal: string | undefined } {
  try {
    return { plan: plan(available), refusal: undefined }
  } catch (error) {
    if (GigpoError.is(error) && error.code === "OUT_OF_MEMORY") return { plan: plan(), refusal: error.message }
    throw error
  }
}

async function findLengths(config: Config, given: EstimateArguments, signal: AbortSignal): Promise<Lengths> {
  const { promptTokens, replyTokens, steps } = given
  if (promptTokens !== undefined && replyTokens !== undefined && steps !== undefined)
    return { promptTokens, replyTokens, steps, source: "as given" }
  const environment = await openConfiguredEnvironment(config)
  await using tokenizer = await Tokenizer.open(config.model)
  const measured = await measureLengths(config, environment, tokenizer, signal)
  return {
    ...measured,
    ...(promptTokens !== undefined && { promptTokens }),
    ...(replyTokens !== undefined && { replyTokens }),
    ...(steps !== undefined && { steps }),
  }
}

/** The named card's speed, else this machine's; every known card's where there is none. */
async function findSpeeds(
  device: "cpu" | "cuda",
  precision: "float32" | "bfloat16",
  config: Config,
  { card }: EstimateArguments,
): Promise<Speed[]> {
  if (device === "cpu") return [{ name: "this CPU", source: "measured", ...(await measureCpu(config.threads)) }]
  const here = deviceReport().devices[0]
  const one = card ?? (here && findCard(here.name))
  const shown = one ? [one] : cards
  return shown.map((of) => ({
    name: of.name,
    source: "datasheet",
    operations: of[precision],
    bandwidth: of.bandwidth,
  }))
}

const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`

function describe(estimate: Estimate, episodes: number, peak: number): string[] {
  const { plan, available, refusal, cacheBytesPerToken, lengths, parts, speeds, device, precision } = estimate
  const length = lengths.promptTokens + lengths.replyTokens
  const steps = formatNumber(lengths.steps)
  const tokens = (name: Part["name"]) => formatNumber(parts.find((part) => part.name === name)?.tokens ?? 0)
  const lines = [
    `memory on ${device}, ${precision}`,
    `  ${plan.text}${available === undefined ? "" : `; there are ${gigabytes(available)}`}`,
    ...(refusal === undefined ? [] : [`  It does not fit. ${refusal}`]),
    `  keys and values of one sequence: ${formatRate(length * cacheBytesPerToken)}B (${formatRate(cacheBytesPerToken)}B a token)`,
    "one iteration",
    `  ${episodes} episodes of ${steps} steps, prompts of ${formatNumber(lengths.promptTokens)} and replies of ` +
      `${formatNumber(lengths.replyTokens)} tokens (${lengths.source})`,
    `  tokens: ${tokens("prefill")} prefilled, ${tokens("decode")} sampled, ${tokens("training")} trained; what prompts share ` +
      "is counted each time",
  ]
  for (const speed of speeds) lines.push(...describeSpeed(parts, speed, peak, speeds.length === 1))
  return lines
}

function describeSpeed(parts: readonly Part[], speed: Speed, peak: number, inDetail: boolean): string[] {
  const { name, source, operations, bandwidth } = speed
  const seconds = (part: Part) => floorSeconds(part, operations, bandwidth)
  const total = parts.reduce((sum, part) => sum + seconds(part), 0)
  const rates = `${formatRate(operations)}FLOP/s and ${formatRate(bandwidth)}B/s`
  const said =
    source === "measured"
      ? `about ${formatTime(total)} on ${name}, at the rates measured in a short test (${rates})`
      : `floor ${formatTime(total)} on ${name} by its datasheet (${rates}); at ${formatNumber(peak)} % of that, which is assumed ` +
        `and not measured, ${formatTime((100 * total) / peak)}`
  if (!inDetail) return [`  ${said}`]
  return [
    `  ${said}`,
    ...parts.map((part) => {
      const amounts = [
        ...(part.operations > 0 ? [`${formatRate(part.operations)}FLOP`] : []),
        ...(part.bytes > 0 ? [`${formatRate(part.bytes)}B`] : []),
      ]
      return `    ${part.name.padEnd(10)} ${formatTime(seconds(part)).padEnd(10)} ${amounts.join(", ")}`
    }),
  ]
}

function toJson({ model: _, speeds, parts, plan, ...rest }: Estimate, peak: number): object {
  const { text: __, ...memory } = plan
  const times = speeds.map((speed) => {
    const seconds = parts.reduce((sum, part) => sum + floorSeconds(part, speed.operations, speed.bandwidth), 0)
    return speed.source === "measured"
      ? { ...speed, seconds }
      : { ...speed, floorSeconds: seconds, assumedPeakPercent: peak, assumedSeconds: (100 * seconds) / peak }
  })
  return { ...rest, memory, parts, times }
}

/** 12.3 T, 45 G: followed by its unit. */
function formatRate(value: number): string {
  const [size, prefix] = (
    [
      [1e15, "P"],
      [1e12, "T"],
      [1e9, "G"],
      [1e6, "M"],
      [1e3, "k"],
    ] as const
  ).find(([least]) => value >= least) ?? [1, ""]
  return `${formatNumber(value / size)} ${prefix}`
}

/** Also what is far below a second. */
function formatTime(seconds: number): string {
  return seconds < 0.95 ? `${formatNumber(seconds * 1000)} ms` : formatDuration(seconds)
}

function parseDevice(text: string): string {
  if (text === "cpu" || text === "cuda") return text
  throw new InvalidArgumentError("It must be cpu or cuda.")
}

function parseMemory(text: string): number {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)\s*([KMGT]i?)?B?$/i.exec(text) ?? []
  const power = "kmgt".indexOf(unit.charAt(0).toLowerCase() || " ") + 1
  const bytes = Number(number) * (unit.length === 2 ? 1024 : 1000) ** power
  if (bytes >= 1e6) return bytes
  throw new InvalidArgumentError("It must be a size of at least a megabyte, e.g. 80GB or 24GiB.")
}

function parseCount(text: string): number {
  const count = Number(text)
  if (count > 0 && Number.isFinite(count)) return count
  throw new InvalidArgumentError("It must be a number above 0.")
}

function parsePercent(text: string): number {
  const percent = Number(text)
  if (percent > 0 && percent <= 100) return percent
  throw new InvalidArgumentError("It must be above 0 and at most 100.")
}
