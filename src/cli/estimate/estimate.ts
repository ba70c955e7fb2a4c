import type { DeviceName } from "../../engine/native/devices.ts"
import { diskBytes } from "../../engine/native/disk.ts"
import {
  chooseDevice,
  chooseGpus,
  deviceMemory,
  type MemoryPlan,
  memoryPlan,
  resolvePolicyOptions,
} from "../../engine/native/options.ts"
import { checkSnapshots } from "../../training/check-options.ts"
import { needsOf } from "../../training/make.ts"
import { type WholeRun, wholeRun } from "../../training/whole-run.ts"
import { GigpoError } from "../../util/errors.ts"
import { type Config, trainingOptions } from "../config/config.ts"
import { configuredTraining } from "../config/modules.ts"
import { shapeOf } from "../shape.ts"
import { readTeacher } from "../teacher.ts"
import { activity } from "../terminal/activity.ts"
import { type Card, cards } from "./cards.ts"
import { type DiskUse, diskUse, recordedBytes } from "./disk-use.ts"
import { findLengths } from "./lengths.ts"
import type { Lengths } from "./measure.ts"
import { measureDisk } from "./measure-disk.ts"
import { modelSizes } from "./sizes.ts"
import { findSpeeds, type Speed } from "./speeds.ts"
import { iterationWork, type Part, samplingWork, sftWork } from "./work.ts"

/** Values from the command line that replace measured ones. */
export interface Given {
  readonly device?: DeviceName
  readonly gpu?: Card
  readonly memory?: number
  readonly promptTokens?: number
  readonly completionTokens?: number
  readonly steps?: number
  /** Whether to write nothing, so that the speed of the disk is not measured. Default false. */
  readonly readOnly?: boolean
}

export interface Estimate {
  readonly device: "cpu" | "cuda"
  /** Number of devices, each of which has the whole model. */
  readonly devices: number
  readonly precision: "float32" | "bfloat16"
  /** Of each device. */
  readonly plan: MemoryPlan
  /** Memory plan of the teacher, which is opened first. */
  readonly teacher: MemoryPlan | undefined
  /** Device memory left for the policy, in bytes. */
  readonly available: number | undefined
  /** Why the model does not fit; undefined if it fits. */
  readonly refusal: string | undefined
  /** Known cards on which the model does not fit, if no card is named and this machine has none. */
  readonly tooSmall: readonly Card[]
  readonly cacheBytesPerToken: number
  readonly lengths: Lengths
  /** Episodes of one iteration. */
  readonly episodes: number
  /** Work of one iteration. */
  readonly parts: readonly Part[]
  /** Work of one evaluation. */
  readonly evaluation: readonly Part[]
  readonly run: WholeRun
  readonly disk: DiskUse
  /** Seconds to write checkpoints and model at the measured rate; undefined if the rate was not measured. */
  readonly savingSeconds: number | undefined
  /** Estimate of the fine-tuning before training, if the configuration has `sft`. */
  readonly cloning: FineTuningEstimate | undefined
  readonly speeds: readonly Speed[]
}

interface FineTuningEstimate {
  readonly tasks: number
  readonly epochs: number
  readonly rows: number
  readonly parts: readonly Part[]
  /** Seconds of the expert's episodes, as measured here. */
  readonly expertSeconds: number | undefined
}

/**
 * Estimates training.
 *
 * @param clones - whether the model is fine-tuned first.
 */
export async function estimateTraining(
  config: Config,
  clones: boolean,
  given: Given,
  signal: AbortSignal,
): Promise<Estimate> {
  const needs = needsOf(await configuredTraining(config))
  checkSnapshots(config.training, config.engine !== undefined)
  const training = trainingOptions(config, needs)
  const selected = given.device ?? selectedDevice(training.device, given.gpu)
  const device = chooseDevice({ device: selected })
  const devices = Math.max(chooseGpus({ device: selected }).length, 1)
  const { model, lora } = await shapeOf(config.model)
  const policy = { ...training, device: selected, lora: training.lora ?? lora }
  const positions = { ...model, maxPositions: config.maxPositions ?? model.maxPositions }
  const teacher = await readTeacher(config, needs)
  const taught = teacher && memoryPlan(teacher.model, { ...teacher.options, device: selected })
  const all = given.memory ?? given.gpu?.memoryBytes ?? deviceMemory(policy)
  const available = all && all - (taught?.total ?? 0)
  const planFor = (bytes?: number) => planMemory((limit) => memoryPlan(positions, policy, limit), bytes)
  const { plan, refusal } = planFor(available)
  const fits = (bytes: number) => planFor(bytes - (taught?.total ?? 0)).refusal === undefined

  const lengths = await findLengths(config, given, positions, signal)
  const { precision, optimizerPrecision, adapter, trainVision } = resolvePolicyOptions(policy, positions)
  const work = {
    ...iterationSizes(config, lengths, policy.critic ?? false),
    recomputed: needs.has("old"),
    reference: policy.reference ?? false,
    teacher: teacher?.model ?? (needs.has("privileged") ? positions : undefined),
  }
  const bytesPerNumber = precision === "bfloat16" ? 2 : 4
  const how = {
    bytesPerNumber,
    recompute: plan.recompute,
    momentBytes: optimizerPrecision === "bfloat16" ? 2 : 4,
    adapter,
    trainVision,
  } as const

  const run = wholeRun(config.training)
  const saved = diskBytes(positions, "language", adapter)
  const beside = policy.critic ? diskBytes(positions, "value", adapter).checkpoint : 0
  const disk = diskUse(config.training, saved.checkpoint + beside, saved.model, recordedBytes(config, lengths))
  const rate =
    device === "cpu" && !given.readOnly
      ? await activity.during("the speed of the disk", () => measureDisk(config.run))
      : undefined
  return {
    device,
    devices,
    precision,
    plan,
    teacher: taught,
    available,
    refusal,
    tooSmall: device === "cuda" && all === undefined ? cards.filter((one) => !fits(one.memoryBytes)) : [],
    cacheBytesPerToken: modelSizes(positions, adapter).cacheNumbersPerToken * bytesPerNumber,
    lengths,
    episodes: work.episodes,
    parts: iterationWork(positions, work, how),
    evaluation: samplingWork(positions, { ...work, episodes: run.evaluationEpisodes }, how),
    run,
    disk,
    savingSeconds: rate && (run.checkpoints * disk.checkpoint + disk.model) / rate,
    cloning: clones ? estimateFineTuning(config, lengths, (rows) => sftWork(positions, rows, how)) : undefined,
    speeds: await activity.during("the speed of this machine", () =>
      findSpeeds({ device, devices, precision, threads: config.threads, card: given.gpu, fits }),
    ),
  }
}

/** Device of a configuration; a GPU if a card is named. */
function selectedDevice(device: DeviceName = "auto", card: Card | undefined): DeviceName {
  return card && (device === "auto" || device === "cpu") ? "cuda" : device
}

/** Returns what is sampled and trained on in an iteration. */
function iterationSizes({ training }: Config, lengths: Lengths, hasCritic: boolean) {
  const { groups, groupSize, stepsPerUpdate, episodesPerUpdate, updatesPerEpoch, epochs, rollout, critic } = training
  const episodes = groups * groupSize
  const updatesOf = (size: number) => Math.ceil((episodes * lengths.steps) / size)
  return {
    ...lengths,
    episodes,
    concurrency: rollout.concurrency,
    epochs,
    updates:
      updatesPerEpoch ??
      (episodesPerUpdate === undefined ? updatesOf(stepsPerUpdate) : Math.ceil(episodes / episodesPerUpdate)),
    critic: hasCritic ? { epochs: critic.epochs, updates: updatesOf(critic.stepsPerUpdate) } : undefined,
  }
}

/** @param workOf - work of training on rows. */
function estimateFineTuning(
  { sft }: Config,
  lengths: Lengths,
  workOf: (rows: Parameters<typeof sftWork>[1]) => readonly Part[],
): FineTuningEstimate {
  const { tasks, epochs, completionsPerUpdate } = sft
  const rows = Math.ceil(tasks * lengths.steps)
  const { secondsPerEpisode } = lengths
  return {
    tasks,
    epochs,
    rows,
    parts: workOf({ ...lengths, rows, epochs, completionsPerUpdate }),
    expertSeconds: secondsPerEpisode && tasks * secondsPerEpisode,
  }
}

/** Memory plan for the available memory; without a limit, and with the reason, if that does not suffice. */
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
