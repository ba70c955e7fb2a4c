import { GigpoError } from "../util/errors.ts"
import type { BenchmarkDefinition } from "./definition.ts"
import { tasksDigest } from "./digest.ts"
import type { BenchmarkTask } from "./tasks.ts"

/** Checks that the tasks are those of the benchmark. */
export async function checkTasks(benchmark: BenchmarkDefinition, tasks: readonly BenchmarkTask[]): Promise<void> {
  const { digests, keys, tasks: choice } = benchmark
  if (tasks.length !== choice.count)
    throw other(benchmark, `there are ${tasks.length} tasks instead of ${choice.count}`, "are incomplete")
  if ((await tasksDigest(tasks)) === digests.tasks) return
  const first = keys ? tasks.findIndex(({ key }, index) => key !== keys[index]) : -1
  const which =
    first >= 0 ? `task ${first} is the first that differs (${tasks[first]!.key} instead of ${keys![first]})` : ""
  throw other(benchmark, which || `the ${choice.count} tasks differ`, "differ, or have another order")
}

/** Checks that the responses of the environment are those of the benchmark. */
export function checkResponses(benchmark: BenchmarkDefinition, responses: string): void {
  if (responses === benchmark.digests.environment) return
  throw other(benchmark, "the tasks are the same, but the environment responds differently", "differ")
}

function other({ name, environment, places }: BenchmarkDefinition, what: string, data: string): GigpoError {
  const fix =
    places.length > 0
      ? `The data of ${places.join(" and ")} (${environment}) ${data}, or the rules of this version of gigpo differ. Use the data and the version of gigpo that the benchmark was made with.`
      : "The rules of this version of gigpo differ from those of the version that the benchmark was made with. Use that version, or a newer version of the benchmark."
  return new GigpoError("BAD_DATA", `This is not the benchmark ${name}: ${what}. ${fix}`)
}
