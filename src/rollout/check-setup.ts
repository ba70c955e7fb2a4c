import { inspect } from "node:util"
import { checkSamplingTemperature, checkWhole } from "../engine/check-arguments.ts"
import type { Sampler } from "../engine/engine.ts"
import type { Environment } from "../environment/environment.ts"
import { checkArguments, type KeysOf, refusePromise } from "../options/arguments.ts"
import { unknownKey } from "../options/unknown-key.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import type { EpisodeSetup } from "./episode.ts"
import type { RolloutHooks, TaskSource } from "./hooks.ts"
import type { rolloutFields } from "./options.ts"
import type { AgentLoop } from "./play.ts"
import type { RolloutSetup } from "./rollout.ts"

// What is refused before anything is played.

/** Who plays what. */
export interface Players<Task> {
  readonly environment?: Environment<Task> | undefined
  readonly play?: AgentLoop<Task> | undefined
  readonly hooks?: RolloutHooks<Task> | undefined
  /** Default: the environment's. */
  readonly tasks?: readonly Task[] | TaskSource<Task> | undefined
}

const hookNames: Record<keyof RolloutHooks | "name", true> = {
  begin: true,
  candidates: true,
  sample: true,
  onTurn: true,
  guide: true,
  score: true,
  keep: true,
  played: true,
  state: true,
  restore: true,
  name: true,
}

/** Refuses players of the wrong kind. Training asks this once, before its first rollout. */
export function checkPlayers<Task>({ environment, play, hooks, tasks }: Players<Task>): void {
  if (environment === undefined && play === undefined)
    throw bad("There is nobody to play; give an environment, or play")
  if (play !== undefined && typeof play !== "function")
    throw bad(`play is ${shown(play)}; it must be a function that plays an episode`)
  if (environment !== undefined) {
    const asked = play ? [] : (["start", "prompt", "parse"] as const)
    checkMethods("environment", environment, tasks === undefined ? [...asked, "tasks"] : asked)
    if (environment.memory !== undefined) checkMethods("environment.memory", environment.memory, ["begin"])
  }
  if (hooks !== undefined) checkHooks(hooks, play !== undefined)
  if (tasks === undefined && environment === undefined)
    throw bad("There is nothing to play; give tasks, or the environment that offers them")
  if (tasks !== undefined && !isList(tasks) && typeof tasks?.next !== "function")
    throw bad("tasks must be a list, or a source of tasks: an object with next()")
}

/** No limit, in seconds. */
const none = Number.POSITIVE_INFINITY

/** What plays episodes is set up by the same keys, so that one object does for all of it; what one has no use for is left aside. */
const setupKeys: KeysOf<RolloutSetup & EpisodeSetup & typeof rolloutFields> = {
  policy: true,
  tokenizer: true,
  environment: true,
  play: true,
  task: true,
  tasks: true,
  groups: true,
  groupSize: true,
  random: true,
  moment: true,
  maxPositions: true,
  temperature: true,
  maxCompletionTokens: true,
  concurrency: true,
  maxSteps: true,
  environmentTimeout: true,
  turnTimeout: true,
  episodeTimeout: true,
  groupTimeout: true,
  maxRetries: true,
  minGroupSize: true,
  maxResamples: true,
  maxForks: true,
  maxRefillRounds: true,
  onlyVaried: true,
  hooks: true,
  onEpisode: true,
  onStep: true,
  signal: true,
}

/** Refuses what is no setup of episodes, and keys that none has. */
export function checkEpisodes(name: string, setup: object): void {
  checkArguments(name, setup, setupKeys)
}

/**
 * Refuses replies so long that no prompt fits beside them: no episode could make a step. An agent's replies are cut to what is left
 * beside its prompts, so these pass.
 *
 * @param name what the limit of a reply is called there
 */
export function checkLengths(
  limits: { readonly maxCompletionTokens: number; readonly maxPositions: number; readonly play?: unknown },
  name = "maxCompletionTokens",
): void {
  const { maxCompletionTokens, maxPositions, play } = limits
  if (play !== undefined || maxCompletionTokens < maxPositions) return
  throw bad(tooLong(name, maxCompletionTokens, `the model has ${maxPositions} positions (maxPositions)`))
}

/** The sentence for it, which ends without a full stop. */
export function tooLong(name: string, maxCompletionTokens: number, positions: string): string {
  return (
    `${name} is ${maxCompletionTokens}, but ${positions} for a prompt and its reply together, so that no prompt fits. ` +
    `Lower ${name}, or take a model with more positions`
  )
}

/** Whether this can speak and be spoken to. */
export function checkSampler(policy: Sampler, tokenizer: ChatCodec): void {
  checkMethods("policy", policy, ["sample"])
  checkWhole(policy.vocabularySize, "policy.vocabularySize")
  checkMethods("tokenizer", tokenizer, ["encodeChat", "decode"])
  if (!Array.isArray(tokenizer.eosTokens)) throw bad("tokenizer.eosTokens must be the list of ids that end a turn")
}

/** Checks the setup of a rollout and says how many groups are wanted. */
export function checkSetup<Task>(setup: RolloutSetup<Task>): number {
  checkEpisodes("rollout", setup)
  const {
    policy,
    tokenizer,
    tasks,
    groups,
    maxResamples = 0,
    maxForks = 0,
    maxRefillRounds = 0,
    maxRetries = 0,
  } = setup
  checkSampler(policy, tokenizer)
  for (const name of ["groupSize", "concurrency", "maxSteps", "maxPositions", "maxCompletionTokens"] as const)
    checkWhole(setup[name], name)
  checkSamplingTemperature(setup.temperature)
  const { environmentTimeout, turnTimeout = none, episodeTimeout = none, groupTimeout = none } = setup
  for (const [name, seconds] of Object.entries({ environmentTimeout, turnTimeout, episodeTimeout, groupTimeout }))
    if (!(seconds > 0)) throw bad(`${name} is ${seconds}; it must be above 0 seconds`)
  for (const [name, value] of Object.entries({ maxResamples, maxForks, maxRefillRounds, maxRetries }))
    if (!(Number.isSafeInteger(value) && value >= 0))
      throw bad(`${name} is ${value}; it must be a whole number of at least 0`)
  checkPlayers(setup)
  checkLengths(setup)
  if (tasks === undefined) throw bad("A rollout needs tasks: a list, or a source of tasks such as environmentTasks()")
  const wanted = groups ?? (isList(tasks) ? tasks.length : undefined)
  if (wanted === undefined) throw bad("Say with groups how many tasks are to be taken from their source")
  if (groups !== undefined) checkWhole(groups, "groups")
  return wanted
}

export function isList<Task>(tasks: readonly Task[] | TaskSource<Task>): tasks is readonly Task[] {
  return Array.isArray(tasks)
}

function checkHooks<Task>(hooks: RolloutHooks<Task>, byAgent: boolean): void {
  if (typeof hooks !== "object" || hooks === null || Array.isArray(hooks))
    throw bad(
      `hooks is ${shown(hooks)}; it must be an object with begin, candidates, sample, onTurn, guide, score, keep or played`,
    )
  const unknown = unknownKey(hooks, hookNames)
  if (unknown) throw bad(`In hooks ${unknown}`)
  for (const name of Object.keys(hookNames).filter((name) => name !== "name") as (keyof RolloutHooks)[])
    if (hooks[name] !== undefined && typeof hooks[name] !== "function") throw bad(`hooks.${name} must be a function`)
  for (const name of ["begin", "candidates", "sample", "onTurn", "guide"] as const)
    if (byAgent && hooks[name])
      throw bad(`hooks.${name} is for an environment's loop; leave it off where play drives the episode`)
}

/** Refuses what lacks one of these methods. */
export function checkMethods<T>(name: string, value: T, methods: readonly (string & keyof T)[]): void {
  refusePromise(name, value)
  if (typeof value !== "object" || value === null)
    throw bad(
      `${name} is ${shown(value)}; it must be an object${methods.length > 0 ? ` with ${methods.join(", ")}` : ""}`,
    )
  const missing = methods.find((method) => typeof value[method] !== "function")
  if (missing) throw bad(`${name}.${missing} must be a function, not ${shown(value[missing])}`)
}

function shown(value: unknown): string {
  return inspect(value, { depth: 0 })
}

function bad(sentence: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `${sentence}.`)
}
