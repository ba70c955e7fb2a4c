import { realpath } from "node:fs/promises"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"

/** Tasks of both splits. */
export interface Splits<Task> {
  readonly train: readonly Task[]
  readonly test: readonly Task[]
}

/** Reader of task files, with the names that messages use. */
export interface TaskFiles<Task> {
  /** Name of the option and of its contents, e.g. "questions". The option of the test split is the same with the prefix `test`. */
  readonly what: string
  readonly environment: string
  read(path: string): Promise<readonly Task[]>
  /** Key by which tasks are assigned to a split: equal tasks have equal keys. */
  keyOf(task: Task): string
}

/**
 * Reads training and test tasks. Without a test file, a tenth of the training tasks is held out.
 *
 * @throws BAD_CONFIG if both paths are the same file, BAD_DATA if a split would be empty, and the errors of `read`
 */
export async function readSplits<Task>(
  path: string,
  testPath: string | undefined,
  { what, environment, read, keyOf }: TaskFiles<Task>,
): Promise<Splits<Task>> {
  const train = await read(path)
  const testOption = `test${what[0]!.toUpperCase()}${what.slice(1)}`
  if (testPath === undefined) {
    const splits = holdOut(train, keyOf)
    if (splits.train.length > 0 && splits.test.length > 0) return splits
    throw new GigpoError(
      "BAD_DATA",
      `${path} has ${train.length} ${train.length === 1 ? what.replace(/s$/, "") : what}, too few to hold out a tenth ` +
        `for the test; give a file of test ${what} (${testOption}).`,
    )
  }
  const test = await read(testPath)
  const [file, testFile] = await Promise.all([realpath(path), realpath(testPath)])
  if (file !== testFile) return { train, test }
  throw new GigpoError(
    "BAD_CONFIG",
    `${environment}: ${what} and ${testOption} are the same file, ${file}; give another file as ${testOption}, or omit ${testOption} ` +
      `to hold out a tenth of ${what}.`,
  )
}

/** Holds out a tenth of the tasks for the test, by a hash of their keys. Equal tasks are always in the same split. */
export function holdOut<Task>(tasks: readonly Task[], keyOf: (task: Task) => string): Splits<Task> {
  const split = { train: [] as Task[], test: [] as Task[] }
  for (const task of tasks) split[hash(keyOf(task)) % 10 === 0 ? "test" : "train"].push(task)
  return split
}

/** 32-bit FNV-1a with a final mixing step, so that its remainders are evenly distributed. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  return Math.imul(value ^ (value >>> 15), 0x2c1b3c6d) >>> 0
}

/** Endless tasks: all in a random order, then all in another random order, and so on. */
export function* shuffledForever<Task>(tasks: readonly Task[], random: Random): Generator<Task, void, undefined> {
  for (let round = 0; tasks.length > 0; round++) {
    const draw = random.derive("questions", round)
    const order = [...tasks]
    for (let i = 0; i < order.length; i++) {
      const j = i + draw.below(order.length - i)
      ;[order[i], order[j]] = [order[j]!, order[i]!]
      yield order[i]!
    }
  }
}
