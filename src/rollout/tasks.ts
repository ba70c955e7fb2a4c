import { checkWhole } from "../engine/check-arguments.ts"
import { environmentError } from "../environment/contract.ts"
import type { Environment } from "../environment/environment.ts"
import { GigpoError } from "../errors.ts"
import type { Random } from "../random.ts"
import { callHook, type HookCaller } from "./call-hook.ts"
import type { TaskSource } from "./hooks.ts"

export type Split = "train" | "test"

/** The first `count` tasks of a split; fewer where the environment has no more. */
export function takeTasks<Task>(environment: Environment<Task>, split: Split, random: Random, count: number): Task[] {
  checkWhole(count, "the number of tasks")
  const tasks: Task[] = []
  for (const task of offered(environment, split, random)) {
    tasks.push(task)
    if (tasks.length === count) break
  }
  return tasks
}

/**
 * The tasks of a split in the environment's own order, each drawn when it is asked for. For one iteration: `random` decides which
 * they are. Disposing of it closes the environment's supply.
 */
export function environmentTasks<Task>(
  environment: Environment<Task>,
  split: Split,
  random: Random,
): TaskSource<Task> & Disposable {
  const tasks = offered(environment, split, random)
  return {
    next() {
      try {
        const { done, value } = tasks.next()
        return done ? undefined : defined(value, environment.name)
      } catch (error) {
        throw environmentError(environment.name, error)
      }
    },
    [Symbol.dispose]: () => {
      tasks.return()
    },
  }
}

/** These tasks in their order. */
export function listedTasks<Task>(tasks: readonly Task[]): TaskSource<Task> {
  return { next: ({ index }) => (index < tasks.length ? defined(tasks[index]!, "tasks") : undefined) }
}

/** Asks for one task after the other, however many wait for theirs; each once, and none after the source had no more. */
export function drawInOrder<Task>(
  source: TaskSource<Task>,
  caller: HookCaller,
): (index: number) => Promise<Task | undefined> {
  const drawn: Promise<Task | undefined>[] = []
  const ask = (index: number) =>
    callHook(
      "tasks.next",
      caller,
      [index, "task"],
      (context) => source.next({ ...context, index }),
      (task) => task,
    )
  return (index) => {
    drawn[index] ??= drawn[index - 1]?.then((before) => (before === undefined ? undefined : ask(index))) ?? ask(index)
    return drawn[index]
  }
}

/** Undefined says that there are no more. */
function defined<Task>(task: Task, where: string): Task {
  if (task !== undefined) return task
  throw new GigpoError("BAD_ENVIRONMENT", `${where}: a task must not be undefined; any other value will do.`)
}

function* offered<Task>(
  environment: Environment<Task>,
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
