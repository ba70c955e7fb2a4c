import { checkArguments } from "../options/arguments.ts"
import { readOptions } from "../options/read.ts"
import type { Group } from "../rollout/hooks.ts"
import { drawnTasks } from "../rollout/tasks.ts"
import type { EvaluationReport } from "../runs/report.ts"
import { GigpoError } from "../util/errors.ts"
import { Random } from "../util/random.ts"
import { type EvaluateOptions, evaluateFields } from "./evaluation-options.ts"
import { besidePlayer, type HeldOutSetup, playHeldOut } from "./held-out.ts"
import { outcomeOf, summarize } from "./summary.ts"

/** Arguments of `evaluate`. */
export interface EvaluateSetup<Task = unknown> extends EvaluateOptions, HeldOutSetup<Task> {}

/**
 * Evaluates a policy on held-out tasks, one episode each.
 *
 * @throws GigpoError `BAD_ARGUMENT` for an invalid argument, `POLICY_BUSY` for a policy that is being trained.
 */
export async function evaluate<Task>(setup: EvaluateSetup<Task>): Promise<EvaluationReport> {
  return (await evaluateEpisodes(setup)).report
}

/** Evaluation with its episodes. Arguments and errors as for `evaluate`. */
export async function evaluateEpisodes<Task>(
  setup: EvaluateSetup<Task>,
): Promise<{ readonly report: EvaluationReport; readonly groups: readonly Group<Task>[] }> {
  checkArguments("evaluate", setup)
  const { environment } = setup
  const { tasks: count, seed, rollout, temperature } = readOptions("evaluate", besidePlayer(setup), evaluateFields)
  if (!environment)
    throw new GigpoError("BAD_ARGUMENT", "evaluate needs an environment with held-out tasks; give environment.")
  const random = new Random(seed).fork("evaluation")
  using tasks = drawnTasks(environment, "test", random)
  const played = { tasks, groups: count, groupSize: 1, random, ...rollout, temperature }
  const { groups, ...failures } = await playHeldOut("evaluate", setup, played)
  return { report: { ...summarize(groups.flatMap(({ episodes }) => episodes.map(outcomeOf))), ...failures }, groups }
}
