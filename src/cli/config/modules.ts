import type { AgentExpert } from "../../agents/agent.ts"
import { agents, aroundAgent, customAgent } from "../../agents/agents.ts"
import { allGroupsEnded } from "../../agents/process-group.ts"
import { stripVolatileText } from "../../chat/normalize.ts"
import { customEstimator } from "../../credit/options.ts"
import { customEngine, type EngineSetup, type OpenedEngine } from "../../engine/custom-engine.ts"
import type { Environment, TaskProvider } from "../../environment/environment.ts"
import { customMemory } from "../../environment/memory/memory.ts"
import { openEnvironment } from "../../environment/open-environment.ts"
import { customEnvironment, customTasks } from "../../environment/registry.ts"
import { aroundEnvironment, customWrapper, makeWrapper } from "../../environment/wrappers.ts"
import { customLoss } from "../../loss/options.ts"
import { only, without } from "../../options/fixed.ts"
import { loadModule, type Module, makeCustom } from "../../options/module.ts"
import { type Complaint, readTable, refusal } from "../../options/read.ts"
import type { CustomValue, OptionFields } from "../../options/table.ts"
import { checkMethods } from "../../rollout/check-setup.ts"
import { customRolloutHooks } from "../../rollout/hooks/built-in.ts"
import type { SftOptions } from "../../sft/options.ts"
import { checkEngine } from "../../training/check-setup.ts"
import { customCurriculum } from "../../training/curriculum/curriculum.ts"
import { customObserver } from "../../training/custom-observer.ts"
import { aroundLoss } from "../../training/kl.ts"
import type { RunObserver } from "../../training/observers.ts"
import type { TrainOptions } from "../../training/options.ts"
import type { AgentSetup, DemonstrationSetup } from "../../training/player.ts"
import { GigpoError } from "../../util/errors.ts"
import { activity } from "../terminal/activity.ts"
import type { Config, Used } from "./config.ts"
import type { ConfigDocument } from "./document.ts"

// Parts of a configuration that may be modules of the user.

/** Keys that may name a module, with the options that apply to any module there. */
const places = [
  { path: ["environment"], around: aroundEnvironment },
  { path: ["environment", "wrapper"], around: {} },
  { path: ["environment", "memory"], around: {} },
  { path: ["agent"], around: aroundAgent },
  { path: ["engine"], around: {} },
  { path: ["observer"], around: {} },
  { path: ["training", "curriculum"], around: {} },
  { path: ["training", "rolloutHooks"], around: {} },
  { path: ["training", "estimator"], around: {} },
  { path: ["training", "loss"], around: aroundLoss },
  { path: ["sft", "loss"], around: {} },
] as const satisfies readonly { path: readonly string[]; around: OptionFields }[]

interface UsedModule {
  readonly path: readonly string[]
  readonly around: OptionFields
  readonly part: Used
}

/** Modules that a configuration names. Loads nothing. */
export function usedModules(config: Partial<Config>): UsedModule[] {
  return places.flatMap(({ path, around }) => {
    const part = partAt(config, path)
    return isUsed(part) && !isModules(config, path) ? [{ path, around, part }] : []
  })
}

/** Place of a loaded part in the file (its `use`), for errors found later. */
const writtenAt = new WeakMap<object, string>()

/**
 * Loads every module of a configuration and reads its options. Paths become absolute, the digest of the file is added,
 * and defaults of the module are filled in.
 *
 * @param folder - base of relative paths.
 */
export async function loadModules(
  config: Config,
  { document, source, where }: ConfigDocument,
  folder: string,
): Promise<Config> {
  let loaded: object = config
  const complaints: Complaint[] = []
  for (const { path, around, part } of usedModules(config)) {
    const { use, sha256: _, ...given } = part
    const place = where([...path, document.hasIn([...path, "use"]) ? "use" : "name"])
    const found = await placed(place, loadFor(use, folder, around))
    const read = readTable(given, { ...found.options, ...around }, "file", path)
    complaints.push(...read.complaints)
    const used: Used = { use: found.path, sha256: found.sha256, ...read.value }
    writtenAt.set(used, place)
    loaded = withPart(loaded, path, used)
  }
  if (complaints.length > 0) throw refusal("BAD_CONFIG", source, complaints, where)
  const { environment } = config
  if (!isUsed(environment)) writtenAt.set(environment, where(["environment"]))
  return loaded as Config
}

/** Option tables of the modules of a loaded configuration, by dotted path. */
export async function moduleFields(config: Config): Promise<ReadonlyMap<string, OptionFields>> {
  const tables = new Map<string, OptionFields>()
  for (const { path, part } of usedModules(config))
    tables.set(path.join("."), (await loadModule(part.use, ".")).options ?? {})
  return tables
}

/** Opens the environment of a loaded configuration, to be played without an agent. */
export async function openConfiguredEnvironment({ environment }: Config): Promise<Environment> {
  const opened = isUsed(environment)
    ? await own(environment, customEnvironment, aroundEnvironment)
    : await openNamed(environment)
  if (customEnvironment.validate(opened) === undefined) return await wrapped(opened, environment)
  const place = writtenAt.get(environment)
  throw new GigpoError(
    "BAD_CONFIG",
    `${place === undefined ? "" : `${place}: `}${opened.name} only provides tasks, which an agent must play: set agent, or use gigpo gateway.`,
  )
}

/**
 * Opens environment and agent of a loaded configuration. With an agent, the environment only has to provide tasks.
 * Disposal waits for programs of the agent that are still ending.
 *
 * @param given - environment in place of the configured one.
 */
export async function configuredPlayer(
  config: Config,
  given?: TaskProvider,
): Promise<AgentSetup<unknown> & { readonly environment: TaskProvider } & AsyncDisposable> {
  const { agent, environment } = config
  const disposable = { [Symbol.asyncDispose]: () => activity.during("programs of the agent to end", allGroupsEnded) }
  if (!agent) return { environment: given ?? (await openConfiguredEnvironment(config)), ...disposable }
  if (environment.wrapper !== undefined)
    throw new GigpoError(
      "BAD_CONFIG",
      "environment.wrapper changes the environment's prompts, which an agent does not read: remove agent or environment.wrapper.",
    )
  const opened =
    given ??
    (isUsed(environment) ? await own(environment, customTasks, aroundEnvironment) : await openNamed(environment))
  const player = { environment: opened, ...(agent.normalize && { normalize: stripVolatileText }), ...disposable }
  if (isUsed(agent)) return { ...player, agent: await own(agent, customAgent, aroundAgent) }
  const { make, fields } = agents[agent.name]
  return { ...player, agent: make(only(agent, fields)) }
}

/**
 * Opens what `gigpo sft` imitates without data: the environment's expert, or for the agent of a module the module's export `expert`.
 *
 * @throws GigpoError `BAD_CONFIG` if the agent's module has no such export.
 */
export async function configuredExpert(
  config: Config,
): Promise<DemonstrationSetup<unknown> & { readonly environment: TaskProvider }> {
  const { agent } = config
  if (!agent || !isUsed(agent)) return { environment: await openConfiguredEnvironment(config) }
  const { path, expert } = await loadModule(agent.use, ".")
  if (typeof expert !== "function")
    throw new GigpoError(
      "BAD_CONFIG",
      `${writtenAt.get(agent) ?? path}: the module of the agent has no expert to learn from. Export a function expert(task, messages) that ` +
        "completes the agent's calls, or give chat transcripts with --data.",
    )
  return { ...(await configuredPlayer(config)), expert: expert as AgentExpert }
}

async function openNamed(environment: Config["environment"]): Promise<Environment> {
  const { name, memory, wrapper: _, ...options } = environment as Config["environment"] & { readonly memory?: unknown }
  const ownMemory = isUsed(memory) ? await own(memory, customMemory) : memory
  const all = { ...options, ...(ownMemory !== undefined && { memory: ownMemory }) }
  const opening = activity.during(`opening the environment ${name}`, () => openEnvironment(name as string, all))
  return await placed(writtenAt.get(environment), opening)
}

/** Environment in its configured wrapper. */
async function wrapped(environment: Environment, { wrapper: around }: Config["environment"]): Promise<Environment> {
  if (around === undefined) return environment
  if (!isUsed(around)) return makeWrapper(around as { readonly name: string })(environment)
  const made = (await own(around, customWrapper))(environment)
  const problem = customEnvironment.validate(made)
  if (problem === undefined) return made
  throw new GigpoError("BAD_CONFIG", `${writtenAt.get(around) ?? around.use}: the wrapped environment ${problem}.`)
}

/** Training options of a loaded configuration, with the exports of its modules. */
export async function configuredTraining({ seed, training }: Config): Promise<TrainOptions> {
  const { estimator, loss, curriculum, rolloutHooks: turns, ...rest } = training
  return {
    ...rest,
    seed,
    ...(curriculum && { curriculum: isUsed(curriculum) ? await own(curriculum, customCurriculum) : curriculum }),
    ...(turns && { rolloutHooks: isUsed(turns) ? await own(turns, customRolloutHooks) : turns }),
    estimator: isUsed(estimator) ? await own(estimator, customEstimator) : estimator,
    loss: isUsed(loss) ? { use: await own(loss, customLoss, aroundLoss), ...only(loss, aroundLoss) } : loss,
  }
}

/**
 * Opens the engine of a module.
 *
 * @throws GigpoError `BAD_CONFIG` if the module exports no function; `BAD_ARGUMENT` if the result lacks a method of an engine or of its store.
 */
export async function openConfiguredEngine(engine: Used, setup: EngineSetup): Promise<OpenedEngine> {
  const open = await own(engine, customEngine)
  const opening = async () => {
    const opened = await open(setup)
    checkEngine("engine", opened)
    checkMethods("engine.store", opened.store, ["save", "checkpoint", "restore"])
    return opened
  }
  return await placed(writtenAt.get(engine), activity.during(`opening the engine ${engine.use}`, opening))
}

/** Observers of the configured module; none if there is no module. */
export async function configuredObservers({ observer }: Config): Promise<readonly RunObserver[]> {
  return isUsed(observer) ? [await own(observer, customObserver)].flat() : []
}

/** SFT options of a loaded configuration, with the exports of its modules. */
export async function configuredSft({ seed, sft: { loss, ...rest } }: Config): Promise<SftOptions> {
  return { ...rest, seed, loss: isUsed(loss) ? { use: await own(loss, customLoss) } : loss }
}

async function own<T>(part: Used, value: CustomValue<T>, around: OptionFields = {}): Promise<T> {
  const { use, sha256: _, ...options } = part
  const make = async () => makeCustom(await loadModule(use, "."), without(options, ...Object.keys(around)), value)
  return await placed(writtenAt.get(part), activity.during(`opening ${use}`, make))
}

/** Loads a module. Rejects options with the name of a key that applies to any module. */
async function loadFor(use: string, folder: string, around: OptionFields): Promise<Module> {
  const found = await loadModule(use, folder)
  for (const key of ["name", "use", "sha256", ...Object.keys(around)])
    if (found.options && Object.hasOwn(found.options, key))
      throw new GigpoError(
        "BAD_CONFIG",
        `${found.path} exports the option ${key}, which is a reserved key; rename the option.`,
      )
  return found
}

/** Whether a part of a configuration is a module. */
export function isUsed(part: unknown): part is Used {
  return (part as Partial<Used> | undefined)?.use !== undefined
}

/** Whether the key belongs to the module of an environment: all keys next to its `use` do, except the common ones. */
function isModules({ environment }: Partial<Config>, path: readonly string[]): boolean {
  return (
    path.length > 1 && path[0] === "environment" && isUsed(environment) && !Object.hasOwn(aroundEnvironment, path[1]!)
  )
}

function partAt(config: object, path: readonly string[]): unknown {
  return path.reduce<unknown>((part, key) => (part as Record<string, unknown> | undefined)?.[key], config)
}

function withPart(config: object, [key, ...path]: readonly string[], part: object): object {
  const below = (config as Record<string, object>)[key!]!
  return { ...config, [key!]: path.length === 0 ? part : withPart(below, path, part) }
}

/** Awaits a result; prefixes errors with the place where the module is named. */
async function placed<T>(place: string | undefined, coming: Promise<T>): Promise<T> {
  try {
    return await coming
  } catch (error) {
    if (place === undefined || !GigpoError.is(error)) throw error
    throw new GigpoError(error.code, `${place}: ${error.message}`, { cause: error.cause })
  }
}
