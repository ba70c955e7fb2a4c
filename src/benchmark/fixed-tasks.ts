import type { Environment, EpisodeContext } from "../environment/environment.ts"
import { Random } from "../util/random.ts"
import type { BenchmarkTask } from "./tasks.ts"

/**
 * Returns an environment whose held-out tasks are those of a benchmark. Random numbers of their episodes depend on benchmark and task only.
 * Training tasks are unchanged.
 */
export function withTasks(benchmark: string, environment: Environment, tasks: readonly BenchmarkTask[]): Environment {
  const keys = new Map(tasks.map(({ task, key }) => [task, key]))
  const fixed = (task: unknown, context: EpisodeContext): EpisodeContext => {
    const key = keys.get(task)
    return key === undefined ? context : { ...context, random: new Random(0).derive("panel", benchmark, key) }
  }
  return {
    ...environment,
    tasks: (split, random) => (split === "test" ? tasks.map(({ task }) => task) : environment.tasks(split, random)),
    start: (task, context) => environment.start(task, fixed(task, context)),
  }
}
