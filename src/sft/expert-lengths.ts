import type { Environment, Expert } from "../environment/environment.ts"
import { expertCompletions } from "../rollout/choosers.ts"
import type { ExpertSetup } from "../rollout/expert.ts"
import type { Group } from "../rollout/hooks.ts"
import { playBy } from "../rollout/play-by.ts"
import { isSolved } from "../training/summary.ts"
import { Pace } from "../util/pace.ts"

/** Returns the number of steps in which the environment's expert solves each group's task, [groups]; undefined for an unsolved task. */
export async function expertLengths<Task>(
  environment: Environment<Task>,
  groups: readonly Group<Task>[],
  setup: Omit<ExpertSetup<Task>, "environment" | "task">,
): Promise<(number | undefined)[]> {
  const lengths: (number | undefined)[] = []
  const pace = new Pace(setup.signal)
  for (const { task, index } of groups) {
    if (pace.due()) await pace.rest() // signals must be handled also with an expert that never waits
    lengths.push(await lengthOf({ ...setup, environment, task, random: setup.random.derive(index) }))
  }
  return lengths
}

async function lengthOf<Task>(setup: ExpertSetup<Task>): Promise<number | undefined> {
  const { environment, task } = setup
  if (!environment.expert) return undefined
  let expert: Expert | undefined
  const episode = await playBy(setup, async (situation) => {
    expert ??= environment.expert!(task) // called here, so that an error fails this episode only
    return await expertCompletions(expert)(situation)
  })
  return isSolved(episode) ? episode.steps.length : undefined
}
