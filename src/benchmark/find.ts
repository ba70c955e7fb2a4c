import { display } from "../options/display.ts"
import { nearestName } from "../options/nearest.ts"
import { GigpoError } from "../util/errors.ts"
import { readBenchmarkFile } from "./benchmark-file.ts"
import type { BenchmarkDefinition } from "./definition.ts"
import { shippedBenchmarks } from "./shipped.ts"

/** Names of the built-in benchmarks. */
export const benchmarkNames: readonly string[] = shippedBenchmarks.map(({ name }) => name)

/**
 * Returns the definition of a built-in benchmark by name, or of a benchmark file by a path that ends in .json.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an unknown benchmark, `BAD_DATA` for an invalid file.
 */
export async function describeBenchmark(benchmark: string): Promise<BenchmarkDefinition> {
  if (typeof benchmark !== "string") throw unknown(benchmark)
  const found = shippedBenchmarks.find(({ name }) => name === benchmark)
  if (found) return found
  if (benchmark.endsWith(".json")) return await readBenchmarkFile(benchmark)
  throw unknown(benchmark)
}

function unknown(benchmark: unknown): GigpoError {
  const near = nearestName(String(benchmark), benchmarkNames)
  const hint = near === undefined ? `Known: ${benchmarkNames.join(", ")}.` : `Did you mean ${near}?`
  return new GigpoError(
    "BAD_ARGUMENT",
    `There is no benchmark ${display(benchmark)}. ${hint} A custom benchmark is given as the path of a file that ends in .json.`,
  )
}
