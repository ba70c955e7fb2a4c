import type { Environment } from "../environment/environment.ts"
import { deviceReport } from "../native/device.ts"
import { Tokenizer } from "../tokenizer/tokenizer.ts"
import { type ExpertEpisodes, expertEpisodes } from "../training/expert-episodes.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import type { ConfigDocument } from "./config/document.ts"
import { resolveModel } from "./model.ts"

// Configuration for a pretrained model, made from the starter configuration of a small model.

/** Key of the completion length. */
export const completionLimit = ["training", "rollout", "maxCompletionTokens"]

/** Keys of the starter configurations that are only for models without prior knowledge. */
const onlySmall = [
  ["initialModel"],
  ["environment", "rules"],
  ["environment", "history"],
  ["environment", "admissible"],
  ["sft", "optimizer"],
  ["training", "epochs"],
  ["training", "optimizer"],
  ["training", "rollout", "temperature"],
]

/** Settings for a pretrained model of some hundred million weights on a CPU: an adapter, and 128 episodes per iteration. */
const settings: readonly (readonly [path: readonly string[], value: unknown])[] = [
  [["lora", "rank"], 16],
  [["sft", "tasks"], 32],
  [["sft", "epochs"], 2],
  [["sft", "completionsPerUpdate"], 16],
  [["training", "iterations"], 40],
  [["training", "groups"], 16],
  [["training", "groupSize"], 8],
  [["training", "stepsPerUpdate"], 256],
  [["training", "optimizer", "learningRate"], 2e-4],
  [["training", "evaluation", "every"], 10],
  [["training", "evaluation", "tasks"], 128],
]

/** Changes a starter configuration for a pretrained model, before options of the command line override it. */
export function usePretrained({ document }: ConfigDocument, model: string): void {
  for (const path of [...onlySmall, completionLimit]) document.deleteIn(path)
  for (const [path, value] of settings) document.setIn(path, value)
  document.set("model", model)
}

/** Facts about the model and the environment that the configuration depends on. */
export interface PretrainedFacts {
  /** Length of the longest completion of the expert, in tokens with the end token; undefined without an expert. */
  readonly longestCompletion: number | undefined
  /** Whether completions can be constrained: the environment has a format, and the tokenizer is byte-level. */
  readonly constrained: boolean
  /** Whether the CPU multiplies bfloat16 faster than float32. On a GPU bfloat16 is the default. */
  readonly bfloat16: boolean
}

/** Sets the keys that depend on the facts, except those that an option of the command line has set. */
export function addFacts(
  { document }: ConfigDocument,
  { longestCompletion, constrained, bfloat16 }: PretrainedFacts,
): void {
  const set = (path: readonly string[], value: unknown) => document.hasIn(path) || document.setIn(path, value)
  if (longestCompletion === undefined) document.delete("sft")
  if (bfloat16) set(["precision"], "bfloat16")
  set(completionLimit, completionLength(document.has("agent"), longestCompletion))
  if (constrained && !document.has("agent")) set(["training", "rollout", "constrained"], true)
}

/** Completion limits in tokens: for an agent's call with a tool, for an action of an environment without an expert, and the minimum. */
const [callLength, actionLength, shortest] = [256, 64, 16]

/** Returns the completion limit: twice the expert's length, since a sampled completion may have more tokens than the encoded text. */
function completionLength(isAgent: boolean, longestCompletion: number | undefined): number {
  if (isAgent) return callLength
  return longestCompletion === undefined ? actionLength : Math.max(shortest, 2 * longestCompletion)
}

type Watch = Pick<ExpertEpisodes, "signal" | "onExpert" | "onWarning">

/** Collects the facts. A model on the Hub is downloaded, so that a wrong name fails here. */
export async function pretrainedFacts(model: string, environment: Environment, watch: Watch): Promise<PretrainedFacts> {
  const directory = await resolveModel(model, watch.signal)
  await using tokenizer = await Tokenizer.open(directory)
  return {
    longestCompletion: environment.expert && (await longestCompletion(environment, tokenizer, watch)),
    constrained: environment.completionPattern !== undefined && isByteLevel(tokenizer),
    bfloat16: deviceReport().cpu.instructionSet.endsWith("_bf16"),
  }
}

/** Number of tasks of which the expert's completions are measured. */
const measured = 32

async function longestCompletion(environment: Environment, tokenizer: Tokenizer, watch: Watch): Promise<number> {
  let longest = 1
  const played = expertEpisodes({ ...watch, environment, tasks: measured, random: new Random(0).derive("init") })
  for await (const steps of played)
    for (const { completion } of steps) longest = Math.max(longest, tokenizer.encode(completion).length + 1)
  return longest
}

function isByteLevel(tokenizer: Tokenizer): boolean {
  try {
    tokenizer.vocabulary()
    return true
  } catch (error) {
    if (GigpoError.is(error) && error.code === "BAD_TOKENIZER") return false
    throw error
  }
}
