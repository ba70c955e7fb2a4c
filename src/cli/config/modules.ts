import { ownEstimator } from "../../credit/options.ts"
import type { Environment, OffersTasks } from "../../environment/environment.ts"
import { ownMemory } from "../../environment/memory/memory.ts"
import { openEnvironment, ownEnvironment, ownTasks } from "../../environment/registry.ts"
import { aroundEnvironment, makeWrapper, ownWrapper } from "../../environment/wrappers.ts"
import { GigpoError } from "../../errors.ts"
import { ownLoss } from "../../loss/options.ts"
import { only, without } from "../../options/fixed.ts"
import { loadModule, type Module, makeOwn } from "../../options/module.ts"
import { type Complaint, readTable, refusal } from "../../options/read.ts"
import type { Fields, OwnValue } from "../../options/table.ts"
import { ownTurnHooks } from "../../rollout/hooks/turn-hooks.ts"
import { agents, aroundAgent, ownAgent } from "../../server/agents.ts"
import { withoutNoise } from "../../server/normalize.ts"
import { allGroupsEnded } from "../../server/process-group.ts"
import { ownCurriculum } from "../../training/curriculum/curriculum.ts"
import { aroundLoss } from "../../training/kl.ts"
import type { CloneOptions, TrainOptions } from "../../training/options.ts"
import type { AgentSetup } from "../../training/player.ts"
import type { Config, Used } from "./config.ts"
import type { ConfigDocument } from "./document.ts"

// The parts of a configuration that may be modules of somebody's own.

/** Where a module may stand, and which options stand beside it whatever the module. */
const places = [
  { path: ["environment"], around: aroundEnvironment },
  { path: ["environment", "around"], around: {} },
  { path: ["environment", "memory"], around: {} },
  { path: ["agent"], around: aroundAgent },
  { path: ["training", "curriculum"], around: {} },
  { path: ["training", "turns"], around: {} },
  { path: ["training", "estimator"], around: {} },
  { path: ["training", "loss"], around: aroundLoss },
  { path: ["clone", "loss"], around: {} },
] as const satisfies readonly { path: readonly string[]; around: Fields }[]

/** Where a loaded part is written, its `use` where it has one: for what turns out when it is put to use. */
const writtenAt = new WeakMap<object, string>()

/**
 * Loads every module that the configuration names and reads its options: the path comes out absolute, with the file's digest
 * beside it, and the module's defaults filled in.
 *
 * @param folder - which the paths are relative to.
 */
export async function loadModules(
  config: Config,
  { document, source, where }: ConfigDocument,
  folder: string,
): Promise<Config> {
  let loaded: object = config
  const complaints: Complaint[] = []
  for (const { path, around } of places) {
    const part = partAt(config, path)
    if (!isUsed(part) || isModules(config, path)) continue
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

/** The tables of the modules that a loaded configuration names, by dotted path: what explains their options. */
export async function moduleFields(config: Config): Promise<ReadonlyMap<string, Fields>> {
  const tables = new Map<string, Fields>()
  for (const { path } of places) {
    const part = partAt(config, path)
    if (isUsed(part) && !isModules(config, path))
      tables.set(path.join("."), (await loadModule(part.use, ".")).options ?? {})
  }
  return tables
}

/** The environment of a loaded configuration, to be played by its own loop. */
export async function openConfiguredEnvironment({ environment }: Config): Promise<Environment> {
  const opened = isUsed(environment)
    ? await own(environment, ownEnvironment, aroundEnvironment)
    : await openNamed(environment)
  if (ownEnvironment.problem(opened) === undefined) return await wrapped(opened, environment)
  const place = writtenAt.get(environment)
  throw new GigpoError(
    "BAD_CONFIG",
    `${place === undefined ? "" : `${place}: `}${opened.name} offers tasks alone, which an agent must play: set agent, or use gigpo gateway.`,
  )
}

/**
 * Who plays what, by a loaded configuration: an agent plays what may offer no more than tasks. Disposing of it waits for programs that
 * still have to end.
 *
 * @param given - plays in place of the configured environment.
 */
export async function configuredPlayer(
  config: Config,
  given?: OffersTasks,
): Promise<AgentSetup<unknown> & { readonly environment: OffersTasks } & AsyncDisposable> {
  const { agent, environment } = config
  const disposable = { [Symbol.asyncDispose]: allGroupsEnded }
  if (!agent) return { environment: given ?? (await openConfiguredEnvironment(config)), ...disposable }
  if (environment.around !== undefined)
    throw new GigpoError(
      "BAD_CONFIG",
      "environment.around is built around the environment's own prompts, which an agent does not read: leave out agent, or around.",
    )
  const opened =
    given ?? (isUsed(environment) ? await own(environment, ownTasks, aroundEnvironment) : await openNamed(environment))
  const player = { environment: opened, ...(agent.normalize && { normalize: withoutNoise }), ...disposable }
  if (isUsed(agent)) return { ...player, agent: await own(agent, ownAgent, aroundAgent) }
  const { make, fields } = agents[agent.name]
  return { ...player, agent: make(only(agent, fields)) }
}

async function openNamed(environment: Config["environment"]): Promise<Environment> {
  const { name, memory, around: _, ...options } = environment as Config["environment"] & { readonly memory?: unknown }
  const told = isUsed(memory) ? await own(memory, ownMemory) : memory
  const all = { ...options, ...(told !== undefined && { memory: told }) }
  return await placed(writtenAt.get(environment), openEnvironment(name as string, all))
}

/** The environment in what is built around it. */
async function wrapped(environment: Environment, { around }: Config["environment"]): Promise<Environment> {
  if (around === undefined) return environment
  if (!isUsed(around)) return makeWrapper(around as { readonly name: string })(environment)
  const made = (await own(around, ownWrapper))(environment)
  const problem = ownEnvironment.problem(made)
  if (problem === undefined) return made
  throw new GigpoError("BAD_CONFIG", `${writtenAt.get(around) ?? around.use}: what it builds ${problem}.`)
}

/** What a loaded configuration says of training, with the values that its modules export. */
export async function configuredTraining({ seed, training }: Config): Promise<TrainOptions> {
  const { estimator, loss, curriculum, turns, ...rest } = training
  return {
    ...rest,
    seed,
    ...(curriculum && { curriculum: isUsed(curriculum) ? await own(curriculum, ownCurriculum) : curriculum }),
    ...(turns && { turns: isUsed(turns) ? await own(turns, ownTurnHooks) : turns }),
    estimator: isUsed(estimator) ? await own(estimator, ownEstimator) : estimator,
    loss: isUsed(loss) ? { use: await own(loss, ownLoss, aroundLoss), ...only(loss, aroundLoss) } : loss,
  }
}

/** What it says of cloning, likewise. */
export async function configuredCloning({ seed, clone: { loss, ...rest } }: Config): Promise<CloneOptions> {
  return { ...rest, seed, loss: isUsed(loss) ? { use: await own(loss, ownLoss) } : loss }
}

async function own<T>(part: Used, value: OwnValue<T>, around: Fields = {}): Promise<T> {
  const { use, sha256: _, ...options } = part
  const make = async () => makeOwn(await loadModule(use, "."), without(options, ...Object.keys(around)), value)
  return await placed(writtenAt.get(part), make())
}

/** Refuses options that would hide the keys that stand around every module. */
async function loadFor(use: string, folder: string, around: Fields): Promise<Module> {
  const found = await loadModule(use, folder)
  for (const key of ["name", "use", "sha256", ...Object.keys(around)])
    if (found.options && Object.hasOwn(found.options, key))
      throw new GigpoError("BAD_CONFIG", `${found.path} exports the option ${key}, which has another meaning there.`)
  return found
}

function isUsed(part: unknown): part is Used {
  return (part as Partial<Used> | undefined)?.use !== undefined
}

/** What an environment of somebody's own has beside `use` are its own options, but for what stands around it. */
function isModules({ environment }: Config, path: readonly string[]): boolean {
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

/** What comes of it; an error says where the module is named. */
async function placed<T>(place: string | undefined, coming: Promise<T>): Promise<T> {
  try {
    return await coming
  } catch (error) {
    if (place === undefined || !GigpoError.is(error)) throw error
    throw new GigpoError(error.code, `${place}: ${error.message}`, { cause: error.cause })
  }
}
