import { hubBaseOf } from "../engine/native/adapter-base.ts"
import { hubNameOf } from "../hub/names.ts"
import type { HubOptions, HubProgress } from "../hub/progress.ts"
import { resolveModel } from "../hub/resolve-model.ts"
import { publishedModel } from "../model-files/published-models.ts"
import { GigpoError } from "../util/errors.ts"
import type { Config } from "./config/config.ts"
import { isUsed } from "./config/modules.ts"
import { formatBar, formatBytes, formatDuration } from "./terminal/format.ts"
import { Screen } from "./terminal/screen.ts"

/**
 * Returns the local path of a model that is given as a folder or as a name on the Hugging Face Hub, after downloading it if necessary. The
 * base model of an adapter is downloaded, too. Progress is shown on standard error.
 */
export async function localModel(named: string, options: Omit<HubOptions, "onProgress"> = {}): Promise<string> {
  const screen = new Screen(process.stderr)
  try {
    const shown = { ...options, onProgress: downloadView(screen) }
    const path = await resolveModel(named, shown)
    const base = options.weights === false ? undefined : await hubBaseOf(path)
    if (base !== undefined) await resolveModel(base, shown)
    return path
  } finally {
    screen.clear()
  }
}

const places = ["model", "teacher"] as const
type Models = Pick<Config, "model"> & Partial<Pick<Config, "teacher">>

/** Returns a configuration whose model and teacher are local paths, after downloading them if necessary. */
export async function withLocalModels<C extends Models>(given: C, options: Omit<HubOptions, "onProgress">): Promise<C> {
  let local = given
  for (const key of places) {
    const named = given[key]
    if (named !== undefined) local = { ...local, [key]: await localModel(named, options) }
  }
  return local
}

/**
 * Returns a configuration whose model and teacher are local paths, without weights. If the Hub cannot be reached, a model whose sizes this
 * package knows keeps its name.
 */
export async function withKnownModels(given: Config, signal: AbortSignal): Promise<Config> {
  try {
    return await withLocalModels(given, { signal, weights: false })
  } catch (error) {
    const isUnreachable = GigpoError.is(error) && (error.code === "HUB_LOST" || error.code === "HUB_REJECTED")
    if (!isUnreachable || !publishedModel(given.model)) throw error
    new Screen(process.stderr, { live: false }).print(
      `${error.message} The published sizes of ${given.model} are used.`,
    )
    return given
  }
}

/** Whether the weights of the model are on this machine. A remote engine has its own. */
function needsWeights({ engine }: Pick<Config, "engine">): boolean {
  return engine === undefined || isUsed(engine)
}

/** Returns a configuration for evaluation whose model is a local path. Weights are downloaded unless a remote engine has them. */
export async function withLocalModel(given: Config, signal: AbortSignal): Promise<Config> {
  return { ...given, model: await localModel(given.model, { signal, weights: needsWeights(given) }) }
}

/** Downloads the weights of models after `withLocalModels` downloaded only configuration and tokenizer, from the same commits. */
export async function fetchWeights(given: Config, local: Config, signal: AbortSignal): Promise<void> {
  if (needsWeights(given)) await withLocalModels(keptModels(given, local), { signal })
}

/** Returns the models as a run stores them. Models of the Hub are stored as name and commit, which are valid on other machines. */
export function keptModels(given: Models, local: Models): Models {
  const kept = (key: keyof Models) => (given[key] === local[key] ? undefined : hubNameOf(local[key]!)) ?? given[key]
  const teacher = kept("teacher")
  return { model: kept("model")!, ...(teacher !== undefined && { teacher }) }
}

/** Returns a function that shows progress: the size of a download first, then a line with the rate and the remaining time. */
export function downloadView(
  screen: Screen,
  now: () => number = () => performance.now(),
): (progress: HubProgress) => void {
  let since = 0
  let begun: number | undefined
  return (progress) => {
    if (progress.kind === "note") return screen.print(progress.text)
    if (progress.kind === "start") {
      const { model, files, bytes, missing } = progress
      const rest = missing < bytes ? `, of which ${formatBytes(missing)} are missing` : ""
      screen.print(`Downloading ${model}: ${files} files, ${formatBytes(bytes)}${rest}.`)
      ;[since, begun] = [now(), undefined]
      return
    }
    const { done, total } = progress
    begun ??= done
    const seconds = (now() - since) / 1000
    const rate = (done - begun) / Math.max(seconds, 0.001)
    const pace =
      rate > 0 && seconds > 1 ? [`${formatBytes(rate)}/s`, `about ${formatDuration((total - done) / rate)} left`] : []
    const parts = [formatBar(done, total, 20), `${formatBytes(done)} of ${formatBytes(total)}`, ...pace]
    screen.show([parts.join("  ")], done === total)
  }
}

/**
 * Rejects to change a model in the cache of the Hub, which other programs share.
 *
 * @throws GigpoError `BAD_ARGUMENT` for a model of the Hub
 */
export function refuseCache(given: Models, local: Models): void {
  if (given.model === local.model) return
  throw new GigpoError(
    "BAD_ARGUMENT",
    `${given.model} is a model of the Hugging Face Hub, and downloaded models must not be changed: use --out <folder> instead of --in-place.`,
  )
}
