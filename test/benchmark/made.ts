import type { BenchmarkEvaluation, EvaluatedEpisode, EvaluationHeader } from "../../src/benchmark/evaluation-file.ts"

const digest = "0123456789abcdef".repeat(4)

/** One episode as a test tells it: whether it succeeded, or that it failed; its return is 10 and its steps are 3, or 0 and 5. */
export type Made = boolean | "failed"

/** An evaluation of a benchmark, [tasks][repeats]; the kinds of tasks take turns. */
export function madeEvaluation(
  tasks: readonly (readonly Made[])[],
  header: Partial<EvaluationHeader> = {},
  kinds: readonly string[] = ["place", "heat"],
): BenchmarkEvaluation {
  return {
    header: {
      ...{
        evaluation: 1,
        gigpo: "0.0.0",
        benchmark: "doors@1",
        digests: { environment: digest, prompt: digest, benchmark: digest },
      },
      ...{ model: { name: "runs/a/model" }, tasks: tasks.length, repeats: tasks[0]!.length, seed: 7 },
      ...{ settings: { temperature: 0.4, environment: { history: 2 } }, ...header },
    },
    episodes: tasks.flatMap((repeats, task) =>
      repeats.map((made, repeat) => ({
        ...{ task, repeat, key: `task ${task}`, ...(kinds.length > 0 && { kind: kinds[task % kinds.length] }) },
        ...{ outcome: made === "failed" ? ("failed" as const) : ("terminated" as const), success: made === true },
        ...{ return: made === true ? 10 : 0, steps: made === true ? 3 : 5 },
        metrics: made === "failed" ? {} : { success: Number(made) },
      })),
    ),
  }
}

/** The same with each episode changed. */
export function changed(
  evaluation: BenchmarkEvaluation,
  change: (episode: EvaluatedEpisode) => Partial<EvaluatedEpisode>,
): BenchmarkEvaluation {
  return { ...evaluation, episodes: evaluation.episodes.map((episode) => ({ ...episode, ...change(episode) })) }
}
