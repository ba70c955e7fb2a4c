import { inspect } from "node:util"
import { checkSamplingTemperature, checkWhole } from "../engine/check-arguments.ts"
import type { Sampler } from "../engine/engine.ts"
import type { Environment } from "../environment/environment.ts"
import { checkArguments, type KeysOf, refusePromise } from "../options/arguments.ts"
import { unknownKey } from "../options/unknown-key.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import { checkConstrained } from "./constrain.ts"
import type { EpisodeSetup } from "./episode.ts"
import type { RolloutHooks, TaskSource } from "./hooks.ts"
import type { rolloutFields } from "./options.ts"
import type { AgentLoop } from "./play.ts"
import type { RolloutSetup } from "./rollout.ts"

// Checks of arguments before episodes are played.

/** Environment or agent loop, with hooks and tasks. */
export interface Players<Task> {
  readonly environment?: Environment<Task> | undefined
  readonly agentLoop?: AgentLoop<Task> | undefined
  readonly hooks?: RolloutHooks<Task> | undefined
  /** Tasks. Default: those of the environment. */
  readonly tasks?: readonly Task[] | TaskSource<Task> | undefined
}

const hookNames: Record<keyof RolloutHooks | "name", true> = {
  check: true,
  start: true,
  candidates: true,
  sample: true,
  onTurn: true,
  guide: true,
  score: true,
  keep: true,
  rolloutEnd: true,
  state: true,
  restore: true,
  name: true,
}

/** Checks environment, agent loop, hooks and tasks. A training calls this once, before its first rollout. */
export function checkPlayers<Task>({ environment, agentLoop, hooks, tasks }: Players<Task>): void {
  if (environment === undefined && agentLoop === undefined)
    throw bad("environment and agentLoop are missing; give one of them")
  if (agentLoop !== undefined && typeof agentLoop !== "function")
    throw bad(`agentLoop is ${shown(agentLoop)}; it must be a function that plays an episode`)
  if (environment !== undefined) {
    const required = agentLoop ? [] : (["start", "prompt", "parse"] as const)
    checkMethods("environment", environment, tasks === undefined ? [...required, "tasks"] : required)
    if (environment.memory !== undefined) checkMethods("environment.memory", environment.memory, ["start"])
  }
  if (hooks !== undefined) checkHooks(hooks, agentLoop !== undefined)
  if (tasks === undefined && environment === undefined)
    throw bad("tasks are missing; give tasks, or an environment that offers them")
  if (tasks !== undefined && !isList(tasks) && typeof tasks?.next !== "function")
    throw bad("tasks must be a list, or a source of tasks: an object with next()")
  hooks?.check?.(agentLoop ? undefined : environment)
}

/** No limit, in seconds. */
const none = Number.POSITIVE_INFINITY

/** Keys of the arguments of all functions that play episodes. One object can be passed to all of them; unused keys are ignored. */
const setupKeys: KeysOf<RolloutSetup & EpisodeSetup & typeof rolloutFields> = {
  policy: true,
  tokenizer: true,
  environment: true,
  agentLoop: true,
  task: true,
  tasks: true,
  groups: true,
  groupSize: true,
  random: true,
  progress: true,
  maxPositions: true,
  temperature: true,
  maxCompletionTokens: true,
  constrained: true,
  concurrency: true,
  maxSteps: true,
  environmentTimeout: true,
  turnTimeout: true,
  episodeTimeout: true,
  groupTimeout: true,
  maxRetries: true,
  minGroupSize: true,
  maxResamples: true,
  maxBranches: true,
  maxRefillRounds: true,
  dynamicSampling: true,
  hooks: true,
  onEpisode: true,
  onStep: true,
  signal: true,
}

/** Checks that a value is an object with known keys. */
export function checkEpisodes(name: string, setup: object): void {
  checkArguments(name, setup, setupKeys)
}

/**
 * Checks that a prompt fits next to a completion of maximum length: otherwise no episode could have a step. Completions of agents are
 * shortened to the remaining positions and are not checked.
 *
 * @param name - name of the option of the maximum length, for the message.
 */
export function checkLengths(
  limits: { readonly maxCompletionTokens: number; readonly maxPositions: number; readonly agentLoop?: unknown },
  name = "maxCompletionTokens",
): void {
  const { maxCompletionTokens, maxPositions, agentLoop } = limits
  if (agentLoop !== undefined || maxCompletionTokens < maxPositions) return
  throw bad(tooLong(name, maxCompletionTokens, `the model has ${maxPositions} positions (maxPositions)`))
}

/** Returns the message for completions that are too long, without a full stop. */
export function tooLong(name: string, maxCompletionTokens: number, positions: string): string {
  return (
    `${name} is ${maxCompletionTokens}, but ${positions} for a prompt and its completion together, so that no prompt fits. ` +
    `Lower ${name}, or use a model with more positions`
  )
}

/** Checks the methods of a sampler and a tokenizer. */
export function checkSampler(policy: Sampler, tokenizer: ChatCodec): void {
  checkMethods("policy", policy, ["sample"])
  checkWhole(policy.vocabularySize, "policy.vocabularySize")
  checkMethods("tokenizer", tokenizer, ["encodeChat", "decode"])
  if (!Array.isArray(tokenizer.eosTokens)) throw bad("tokenizer.eosTokens must be the list of ids that end a turn")
}

/** Checks the arguments of a rollout. Returns the number of groups. */
export function checkSetup<Task>(setup: RolloutSetup<Task>): number {
  checkEpisodes("rollout", setup)
  const {
    policy,
    tokenizer,
    tasks,
    groups,
    maxResamples = 0,
    maxBranches = 0,
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
  for (const [name, value] of Object.entries({ maxResamples, maxBranches, maxRefillRounds, maxRetries }))
    if (!(Number.isSafeInteger(value) && value >= 0))
      throw bad(`${name} is ${value}; it must be an integer of at least 0`)
  checkPlayers(setup)
  checkLengths(setup)
  if (setup.constrained) {
    if (setup.agentLoop !== undefined)
      throw bad("constrained applies to the loop of an environment; agents request formats in their calls")
    checkConstrained(setup)
  }
  if (tasks === undefined) throw bad("A rollout needs tasks: a list, or a source of tasks such as environmentTasks()")
  const wanted = groups ?? (isList(tasks) ? tasks.length : undefined)
  if (wanted === undefined) throw bad("groups is missing: with a source of tasks, give the number of tasks")
  if (groups !== undefined) checkWhole(groups, "groups")
  return wanted
}

export function isList<Task>(tasks: readonly Task[] | TaskSource<Task>): tasks is readonly Task[] {
  return Array.isArray(tasks)
}

function checkHooks<Task>(hooks: RolloutHooks<Task>, byAgent: boolean): void {
  if (typeof hooks !== "object" || hooks === null || Array.isArray(hooks))
    throw bad(
      `hooks is ${shown(hooks)}; it must be an object with start, candidates, sample, onTurn, guide, score, keep or rolloutEnd`,
    )
  const unknown = unknownKey(hooks, hookNames)
  if (unknown) throw bad(`In hooks ${unknown}`)
  for (const name of Object.keys(hookNames).filter((name) => name !== "name") as (keyof RolloutHooks)[])
    if (hooks[name] !== undefined && typeof hooks[name] !== "function") throw bad(`hooks.${name} must be a function`)
  for (const name of ["start", "candidates", "sample", "onTurn", "guide"] as const)
    if (byAgent && hooks[name])
      throw bad(
        `hooks.${name} applies to the loop of an environment; leave it out where an agent loop runs the episode`,
      )
}

/** Checks that a value is an object with these methods. */
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
