import { realpath } from "node:fs/promises"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"

export interface Splits<Task> {
  readonly train: readonly Task[]
  readonly test: readonly Task[]
}

/** How a set of tasks is come by. */
export interface TaskFiles<Task> {
  /** What they are and what the option is called: "questions"; that of the held-out ones begins with `test`. */
  readonly what: string
  readonly environment: string
  read(path: string): Promise<readonly Task[]>
  /** What makes a task the same as another. */
  keyOf(task: Task): string
}

/**
 * The tasks to train on and those of the test: a file of their own, or a tenth of the others.
 *
 * @throws BAD_CONFIG where both are one file, BAD_DATA where a split would be empty; else as `read`
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
      `${path} has ${train.length} ${train.length === 1 ? what.replace(/s$/, "") : what}, too few to hold one in ten back ` +
        `for a test; give a file of test ${what} (${testOption}).`,
    )
  }
  const test = await read(testPath)
  const [file, testFile] = await Promise.all([realpath(path), realpath(testPath)])
  if (file !== testFile) return { train, test }
  throw new GigpoError(
    "BAD_CONFIG",
    `${environment}: ${what} and ${testOption} are the same file, ${file}; a test needs others. Left out, ${testOption} are a tenth of ${what}.`,
  )
}

/** Keeps a tenth of the tasks for the test, by a hash of their keys: equal ones never fall on both sides. */
export function holdOut<Task>(tasks: readonly Task[], keyOf: (task: Task) => string): Splits<Task> {
  const split = { train: [] as Task[], test: [] as Task[] }
  for (const task of tasks) split[hash(keyOf(task)) % 10 === 0 ? "test" : "train"].push(task)
  return split
}

/** FNV-1a, 32 bits, mixed once more so that its remainders are even. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  return Math.imul(value ^ (value >>> 15), 0x2c1b3c6d) >>> 0
}

/** Endless: all in a random order, then all in another. */
export function* shuffledForever<Task>(tasks: readonly Task[], random: Random): Generator<Task, void, undefined> {
  for (let round = 0; tasks.length > 0; round++) {
    const draw = random.fork("questions", round)
    const order = [...tasks]
    for (let i = 0; i < order.length; i++) {
      const j = i + draw.below(order.length - i)
      ;[order[i], order[j]] = [order[j]!, order[i]!]
      yield order[i]!
    }
  }
}
