import type { Environment, EpisodeContext } from "../environment/environment.ts"
import { Random } from "../util/random.ts"
import type { PanelTask } from "./tasks.ts"

/**
 * An environment whose held-out tasks are a panel's, and in whose episodes of them what is random follows from panel and task
 * alone. What is trained on stays as it is.
 */
export function withTasks(panel: string, environment: Environment, tasks: readonly PanelTask[]): Environment {
  const keys = new Map(tasks.map(({ task, key }) => [task, key]))
  const fixed = (task: unknown, context: EpisodeContext): EpisodeContext => {
    const key = keys.get(task)
    return key === undefined ? context : { ...context, random: new Random(0).fork("panel", panel, key) }
  }
  return {
    ...environment,
    tasks: (split, random) => (split === "test" ? tasks.map(({ task }) => task) : environment.tasks(split, random)),
    start: (task, context) => environment.start(task, fixed(task, context)),
  }
}
