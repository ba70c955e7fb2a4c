import { createHash } from "node:crypto"
import type { Environment, TaskProvider } from "../environment/environment.ts"
import { canonicalJson } from "../json/numbers.ts"
import { stringify } from "../json/text.ts"
import { startEpisode } from "../rollout/environment-episode.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { drawnTasks } from "../rollout/tasks.ts"
import { Pace } from "../util/pace.ts"
import { Random } from "../util/random.ts"
import type { TaskChoice } from "./definition.ts"
import { shortDigest } from "./digest-text.ts"
import { withoutPlaces } from "./options.ts"

/** Task of a benchmark. */
export interface BenchmarkTask<Task = unknown> {
  /** Key of 16 hexadecimal digits that depends on the task only. Repetitions of the same task have the suffixes "-2" and so on. */
  readonly key: string
  /** Task of the environment. */
  readonly task: Task
  /** Kind of the task, where the environment reports the metric `success/<kind>`. */
  readonly kind?: string | undefined
}

/** Number of consecutive tasks without a new one after which an environment is assumed to have no more. */
const mostMisses = 2000

/**
 * Returns the tasks of a benchmark from the held-out tasks of an environment, independent of the seed of a run.
 *
 * @param count - maximum number of tasks.
 * @param options - options of the environment; paths in them are not part of a task.
 */
export async function chooseTasks(
  environment: TaskProvider,
  { count, sorted, distinct }: TaskChoice & { readonly count: number },
  options: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
): Promise<BenchmarkTask[]> {
  const tasks: unknown[] = []
  const openings = new Set<string>()
  const pace = new Pace(signal)
  using drawn = drawnTasks(environment, "test", new Random(0).derive("panel"))
  for (let misses = 0; misses < mostMisses && (sorted || tasks.length < count); ) {
    if (pace.due()) await pace.rest()
    const task = drawn.next()
    if (task === undefined) break
    const opening = distinct ? await openingOf(environment as Environment, task, signal) : String(tasks.length)
    misses = openings.has(opening) ? misses + 1 : 0
    if (misses > 0) continue
    openings.add(opening)
    tasks.push(task)
  }
  const texts = tasks.map((task) => ({ task, text: withoutPlaces(canonicalJson(stringify(task)), options) }))
  // Order of code units, which does not depend on locale or file system.
  if (sorted) texts.sort((a, b) => (a.text < b.text ? -1 : Number(a.text > b.text)))
  const seen = new Map<string, number>()
  return texts.slice(0, count).map(({ task, text }) => {
    const digest = shortDigest(createHash("sha256").update(text).digest("hex"))
    const times = (seen.get(digest) ?? 0) + 1
    seen.set(digest, times)
    return { key: times === 1 ? digest : `${digest}-${times}`, task }
  })
}

async function openingOf(environment: Environment, task: unknown, signal?: AbortSignal): Promise<string> {
  const { environmentTimeout } = rolloutDefaults
  await using episode = await startEpisode({ environment, task, random: new Random(0), environmentTimeout, signal })
  return episode.first.anchor
}
