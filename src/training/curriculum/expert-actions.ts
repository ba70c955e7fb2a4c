import type { Environment } from "../../environment/environment.ts"
import { expertReplies } from "../../rollout/choosers.ts"
import { type Episode, isScored } from "../../rollout/episode.ts"
import { playBy } from "../../rollout/play-by.ts"
import { GigpoError } from "../../util/errors.ts"
import { Random } from "../../util/random.ts"
import type { CurriculumSetup } from "./curriculum.ts"

/** Whether an episode solved its task: the metric `success` where there is one, else a return above 0. */
export function isSuccess(episode: Episode): boolean {
  return isScored(episode) && (episode.metrics.success ?? episode.return) > 0
}

/**
 * Asks an environment's expert how tasks are solved: the actions of an episode that it wins, undefined where it does not. Each
 * task is played once, whoever asks.
 *
 * @throws GigpoError `BAD_ARGUMENT` where there is no expert.
 */
export function expertActions<Task>(
  name: string,
  { environment, rollout }: CurriculumSetup<Task>,
): (task: Task) => Promise<readonly string[] | undefined> {
  if (!environment?.expert)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The curriculum ${name} needs an expert, which ${environment?.name ?? "the tasks"} ${environment ? "has" : "have"} not: take another curriculum, or add expert().`,
    )
  const known = new Map<Task, Promise<readonly string[] | undefined>>()
  return (task) => {
    if (known.size > mostKnown) known.clear()
    const actions = known.get(task) ?? solve(environment, task, rollout)
    known.set(task, actions)
    return actions
  }
}

/** Those of an iteration are asked for again and again, those of others seldom. */
const mostKnown = 4096

async function solve<Task>(
  environment: Environment<Task>,
  task: Task,
  { maxSteps, environmentTimeout }: CurriculumSetup["rollout"],
): Promise<readonly string[] | undefined> {
  const choose = expertReplies(environment.expert!(task))
  // Actions must do the same in every episode of a task, so that any random numbers will do.
  const setup = { environment, task, random: new Random(0), maxSteps, environmentTimeout }
  const episode = await playBy(setup, choose)
  return isSuccess(episode) ? episode.steps.map(({ action }) => action) : undefined
}
