import { checkWhole } from "../engine/check-arguments.ts"
import { environmentError } from "../environment/contract.ts"
import type { Environment, TaskProvider } from "../environment/environment.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { type OnWarning, warn } from "../util/warn.ts"
import { callHook, type HookCaller } from "./call-hook.ts"
import { checkMethods } from "./check-setup.ts"
import type { TaskSource } from "./hooks.ts"

export type Split = "train" | "test"

/** Returns the first `count` tasks of a split; fewer if the environment has no more. */
export function takeTasks<Task>(environment: Environment<Task>, split: Split, random: Random, count: number): Task[] {
  checkMethods("environment", environment, ["tasks"])
  checkWhole(count, "the number of tasks")
  const tasks: Task[] = []
  for (const task of offered(environment, split, random)) {
    tasks.push(task)
    if (tasks.length === count) break
  }
  return tasks
}

/**
 * Returns a source of the tasks of a split in the order of the environment, for one iteration. Tasks are drawn on demand; `random` determines the
 * order. Disposal closes the iterator of the environment. If the environment fails after its first task, the source ends with a warning
 * (`onWarning`, by default a warning of Node.js).
 */
export function environmentTasks<Task>(
  environment: Environment<Task>,
  split: Split,
  random: Random,
  onWarning: OnWarning = warn,
): TaskSource<Task> & Disposable {
  checkMethods("environment", environment, ["tasks"])
  const tasks = drawnTasks(environment, split, random)
  let drawn = 0
  return {
    ...tasks,
    next() {
      try {
        const task = tasks.next()
        if (task !== undefined) drawn++
        return task
      } catch (error) {
        if (drawn === 0) throw error
        onWarning(`There are no more than ${drawn} ${split} tasks in this iteration. ${(error as GigpoError).message}`)
        return undefined
      }
    },
  }
}

/** Returns a source of tasks that throws errors of the environment, for work that must not run on fewer tasks than there are. */
export function drawnTasks<Task>(
  environment: TaskProvider<Task>,
  split: Split,
  random: Random,
): Disposable & { next(): Task | undefined } {
  const tasks = offered(environment, split, random)
  return {
    next() {
      try {
        const { done, value } = tasks.next()
        return done ? undefined : defined(value, environment.name)
      } catch (cause) {
        throw environmentError(environment.name, cause)
      }
    },
    [Symbol.dispose]: () => {
      tasks.return()
    },
  }
}

/** Returns a source of listed tasks, in their order. */
export function listedTasks<Task>(tasks: readonly Task[]): TaskSource<Task> {
  return { next: ({ index }) => (index < tasks.length ? defined(tasks[index]!, "tasks") : undefined) }
}

/** Serializes the calls of a source: one call at a time, and none after the source has ended. */
export function drawInOrder<Task>(
  source: TaskSource<Task>,
  caller: HookCaller,
): (index: number) => Promise<Task | undefined> {
  const drawn: Promise<Task | undefined>[] = []
  const pace = new Pace(caller.signal)
  const ask = (index: number) =>
    callHook(
      "tasks.next",
      caller,
      [index, "task"],
      async (context) => {
        // Signals must be handled also where all episodes end immediately.
        if (pace.due()) await pace.rest()
        return await source.next({ ...context, index })
      },
      (task) => task,
    )
  return (index) => {
    drawn[index] ??= drawn[index - 1]?.then((before) => (before === undefined ? undefined : ask(index))) ?? ask(index)
    return drawn[index]
  }
}

/** Checks a task: undefined is reserved for the end of the tasks. */
function defined<Task>(task: Task, where: string): Task {
  if (task !== undefined) return task
  throw new GigpoError("BAD_ENVIRONMENT", `${where}: a task must not be undefined; any other value will do.`)
}

function* offered<Task>(
  environment: TaskProvider<Task>,
  split: Split,
  random: Random,
): Generator<Task, void, undefined> {
  let none = true
  for (const task of environment.tasks(split, random)) {
    none = false
    yield task
  }
  if (none) throw new GigpoError("BAD_ENVIRONMENT", `${environment.name} offers no ${split} tasks.`)
}
