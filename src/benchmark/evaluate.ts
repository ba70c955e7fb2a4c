import { checkArguments } from "../options/arguments.ts"
import { integer } from "../options/field.ts"
import { without } from "../options/fixed.ts"
import { readOptions } from "../options/read.ts"
import type { OptionsOf } from "../options/table.ts"
import { checkMethods } from "../rollout/check-setup.ts"
import type { Group } from "../rollout/hooks.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { evaluateFields } from "../training/evaluation-options.ts"
import { besidePlayer, type HeldOutSetup, playHeldOut } from "../training/held-out.ts"
import { isSolved, outcomeOf } from "../training/summary.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import { version } from "../util/version.ts"
import type { Benchmark } from "./benchmark.ts"
import type { BenchmarkEvaluation, EvaluatedEpisode, EvaluationHeader } from "./evaluation-file.ts"
import { environmentOptions, pick, plainOptions, speech } from "./options.ts"
import { type BenchmarkReport, reportBenchmark } from "./report.ts"
import type { BenchmarkTask } from "./tasks.ts"

export const benchmarkFields = {
  ...without(evaluateFields, "tasks"),
  repeats: integer(1, "Episodes per task.", { min: 1, max: 10_000 }),
}

/** Arguments of `evaluateBenchmark`. */
export interface EvaluateBenchmarkSetup<Task = unknown>
  extends OptionsOf<typeof benchmarkFields>,
    Omit<HeldOutSetup<Task>, "environment"> {
  /** Benchmark from `openBenchmark`. */
  readonly benchmark: Benchmark<Task>
  /** Model, for the file: its `name`, and the SHA-256 of its weights as `sha256`. */
  readonly model?: EvaluationHeader["model"]
}

/**
 * Evaluates a policy on all tasks of a benchmark, with `repeats` episodes each. Random numbers of the environment are keyed by benchmark and task; those
 * of the policy by seed, benchmark, task and repeat. Results do not depend on the concurrency.
 *
 * @returns `evaluation`, for `writeEvaluation`, and its `report`
 * @throws GigpoError `BAD_ARGUMENT` for an invalid option, and the errors of `evaluate`.
 */
export async function evaluateBenchmark<Task>(
  setup: EvaluateBenchmarkSetup<Task>,
): Promise<{ readonly evaluation: BenchmarkEvaluation; readonly report: BenchmarkReport }> {
  checkArguments("evaluateBenchmark", setup)
  const { benchmark, model, ...given } = setup
  if (Object.hasOwn(given, "environment"))
    throw new GigpoError("BAD_ARGUMENT", "evaluateBenchmark: the benchmark has an environment; leave environment out.")
  const { seed, repeats, rollout, temperature } = readOptions("evaluateBenchmark", besidePlayer(given), benchmarkFields)
  checkMethods("benchmark", benchmark, [])
  if (!Array.isArray(benchmark.tasks))
    throw new GigpoError("BAD_ARGUMENT", "benchmark must be a benchmark from openBenchmark.")
  const { groups, ...failures } = await playHeldOut(
    "evaluateBenchmark",
    { ...setup, environment: benchmark.environment },
    {
      tasks: benchmark.tasks.map(({ task }) => task),
      groups: benchmark.tasks.length,
      groupSize: repeats,
      random: new Random(seed).derive("panel", benchmark.name),
      ...rollout,
      // The benchmark determines the maximum number of steps.
      maxSteps: rolloutDefaults.maxSteps,
      temperature,
    },
  )
  const { maxCompletionTokens, maxRetries: retries } = rollout
  const environment = plainOptions({ ...environmentOptions(benchmark.options), ...pick(benchmark.options, speech) })
  const header: EvaluationHeader = {
    evaluation: 1,
    gigpo: version,
    benchmark: benchmark.name,
    digests: benchmark.digests,
    ...(model && { model }),
    tasks: benchmark.tasks.length,
    repeats,
    seed,
    settings: { temperature, maxCompletionTokens, retries, environment },
  }
  const evaluation = {
    header,
    episodes: benchmark.tasks.flatMap((task, index) => linesOf(groups[index]!, index, task)),
  }
  return { evaluation, report: { ...reportBenchmark(evaluation), ...failures } }
}

function linesOf({ episodes }: Group, task: number, { key, kind }: BenchmarkTask): EvaluatedEpisode[] {
  return episodes.map((episode, repeat) => {
    const played = outcomeOf(episode)
    return { task, repeat, key, ...(kind !== undefined && { kind }), ...played, success: isSolved(episode) }
  })
}
