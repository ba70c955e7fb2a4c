import { type Benchmark, openBenchmark } from "../benchmark/benchmark.ts"
import type { BenchmarkDefinition } from "../benchmark/definition.ts"
import { shortDigest } from "../benchmark/digest-text.ts"
import { type EvaluateBenchmarkSetup, evaluateBenchmark } from "../benchmark/evaluate.ts"
import { writeEvaluation } from "../benchmark/evaluation-file.ts"
import { describeBenchmark } from "../benchmark/find.ts"
import type { BenchmarkReport } from "../benchmark/report.ts"
import { checkNewFile } from "../files/check-new-file.ts"
import { GigpoError } from "../util/errors.ts"
import { visible } from "../util/visible.ts"
import type { Config } from "./config/config.ts"
import { describeModel } from "./evaluated-model.ts"
import { activity } from "./terminal/activity.ts"
import { formatShare } from "./terminal/format.ts"
import { table } from "./terminal/table.ts"

export interface BenchmarkArguments {
  readonly benchmark?: string
  readonly repeats?: number
  readonly out?: string
  readonly overwrite?: boolean
}

/** Opens the requested benchmark with the options of the configured environment. Undefined if none was requested. */
export async function openBenchmarkFor(
  { environment }: Config,
  { benchmark, repeats, out, overwrite = false }: BenchmarkArguments,
  signal: AbortSignal,
): Promise<Benchmark | undefined> {
  if (benchmark === undefined) {
    const idle = repeats !== undefined ? "--repeats" : out !== undefined ? "--out" : undefined
    if (idle === undefined) return undefined
    throw new GigpoError("BAD_ARGUMENT", `${idle} needs a benchmark, e.g. --benchmark sokoban/6x6@1.`)
  }
  if (out !== undefined) await checkNewFile(out, overwrite)
  const options = optionsFor(await describeBenchmark(benchmark), environment)
  return await activity.during(`opening the benchmark ${benchmark}`, () =>
    openBenchmark(benchmark, options, { signal }),
  )
}

/** Options of the configured environment. Throws `BAD_CONFIG` if the benchmark has another environment. */
export function optionsFor(
  benchmark: Pick<BenchmarkDefinition, "name" | "environment">,
  environment: Config["environment"],
): Readonly<Record<string, unknown>> {
  const { name, ...options } = withoutAround(environment)
  if (name === benchmark.environment) return options
  throw new GigpoError(
    "BAD_CONFIG",
    `The benchmark ${benchmark.name} is for ${benchmark.environment}, but the configured environment is ${name ?? "a module"}; ` +
      `choose another benchmark, or set environment.name=${benchmark.environment}.`,
  )
}

/**
 * Environment configuration without `wrapper`. Throws `BAD_CONFIG` if one is set: benchmarks use unwrapped environments.
 */
export function withoutAround({ wrapper, ...rest }: Config["environment"]): Omit<Config["environment"], "wrapper"> {
  if (wrapper === undefined) return rest
  throw new GigpoError(
    "BAD_CONFIG",
    "A benchmark uses its environment without a wrapper: remove environment.wrapper from the configuration.",
  )
}

/** Evaluates on a benchmark and writes the outcomes to `out`, if given. */
export async function evaluateOnBenchmark(
  setup: Omit<EvaluateBenchmarkSetup, "model">,
  directory: string,
  out: string | undefined,
): Promise<BenchmarkReport> {
  if (out === undefined) return (await evaluateBenchmark(setup)).report
  const { evaluation, report } = await evaluateBenchmark({ ...setup, model: await named(directory) })
  await writeEvaluation(out, evaluation)
  return report
}

const named = (directory: string) =>
  activity.during(`the digest of the weights of ${directory}`, () => describeModel(directory))

/** Lines about options of the environment that the benchmark overrides. */
export function describeReplaced({ name, replaced }: Benchmark): string[] {
  if (replaced.length === 0) return []
  return [`${name} overrides these options of the configured environment: ${replaced.join(", ")}.`]
}

/** Lines of a benchmark's report after the overall success rate. */
export function benchmarkLines({ kinds, passAtK, repeats, digests }: BenchmarkReport): string[] {
  const share = (value: number) => formatShare(value)
  const kindRows = kinds.map(({ kind, tasks, success, successInterval: [low, high] }) => [
    ...["", visible(kind), `${tasks} tasks`, share(success)],
    `(95 %: ${share(low)} to ${share(high)})`,
  ])
  const passes = passAtK.flatMap((value, index) =>
    isShown(index + 1, repeats) ? [`${index + 1}: ${share(value)}`] : [],
  )
  return [
    ...table(kindRows, [2, 3]),
    ...(repeats > 1 ? [`  pass@k  ${passes.join(", ")}`] : []),
    `  digest ${shortDigest(digests.benchmark)}  (environment ${shortDigest(digests.environment)}, prompt ${shortDigest(digests.prompt)})`,
  ]
}

/** Whether pass@k is printed: powers of two and the last. */
function isShown(k: number, repeats: number): boolean {
  return Number.isInteger(Math.log2(k)) || k === repeats
}
