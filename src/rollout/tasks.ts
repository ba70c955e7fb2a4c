import { checkWhole } from "../engine/check-arguments.ts"
import { environmentError } from "../environment/contract.ts"
import type { Environment, OffersTasks } from "../environment/environment.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { type OnWarning, warn } from "../util/warn.ts"
import { callHook, type HookCaller } from "./call-hook.ts"
import { checkMethods } from "./check-setup.ts"
import type { TaskSource } from "./hooks.ts"

export type Split = "train" | "test"

/** The first `count` tasks of a split; fewer where the environment has no more. */
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
 * The tasks of a split in the environment's own order, each drawn when it is asked for. For one iteration: `random` decides which
 * they are. Disposing of it closes the environment's supply. An environment that fails after its first task has no more, which
 * `onWarning` (default: a warning of Node.js) receives the message.
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

/** The same for work that must not be done on fewer tasks than there are: whatever fails is thrown, with the environment's name. */
export function drawnTasks<Task>(
  environment: OffersTasks<Task>,
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
  const pace = new Pace(caller.signal)
  const ask = (index: number) =>
    callHook(
      "tasks.next",
      caller,
      [index, "task"],
      async (context) => {
        // Episodes that end at once, task after task, must not keep signals from their turn.
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

/** Undefined says that there are no more. */
function defined<Task>(task: Task, where: string): Task {
  if (task !== undefined) return task
  throw new GigpoError("BAD_ENVIRONMENT", `${where}: a task must not be undefined; any other value will do.`)
}

function* offered<Task>(
  environment: OffersTasks<Task>,
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
