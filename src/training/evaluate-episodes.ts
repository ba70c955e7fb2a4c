import { readOptions } from "../options/read.ts"
import type { Group } from "../rollout/hooks.ts"
import { drawnTasks } from "../rollout/tasks.ts"
import type { EvaluationReport } from "../runs/report.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import type { EvaluateSetup } from "./evaluate.ts"
import { evaluateFields } from "./evaluation-options.ts"
import { besidePlayer, playTasks } from "./held-out.ts"
import { outcomeOf, summarize } from "./summary.ts"

/** Evaluation with its episodes, of a policy whose weights the caller keeps unchanged. Arguments and errors as for `evaluate`. */
export async function evaluateEpisodes<Task>(
  setup: EvaluateSetup<Task>,
): Promise<{ readonly report: EvaluationReport; readonly groups: readonly Group<Task>[] }> {
  const { environment } = setup
  const { tasks: count, seed, rollout, temperature } = readOptions("evaluate", besidePlayer(setup), evaluateFields)
  if (!environment)
    throw new GigpoError("BAD_ARGUMENT", "evaluate needs an environment with held-out tasks; give environment.")
  const random = new Random(seed).derive("evaluation")
  using tasks = drawnTasks(environment, "test", random)
  const played = { tasks, groups: count, groupSize: 1, random, ...rollout, temperature }
  const { groups, ...failures } = await playTasks(setup, played)
  return { report: { ...summarize(groups.flatMap(({ episodes }) => episodes.map(outcomeOf))), ...failures }, groups }
}
