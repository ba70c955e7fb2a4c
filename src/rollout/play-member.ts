import type { Random } from "../util/random.ts"
import { runAgent } from "./agent.ts"
import { type Course, type EpisodeTree, type FamilyPlace, playFamily } from "./branches.ts"
import { type EpisodeStep, runCourse } from "./episode.ts"
import { rolloutDefaults } from "./options.ts"
import type { RolloutSetup } from "./rollout.ts"

/**
 * Plays a member of a group and its branches.
 *
 * @param key - key of the random numbers in addition to task and member.
 */
export async function playMember<Task>(
  { hooks, environment, agentLoop, onStep, ...setup }: RolloutSetup<Task>,
  task: Task,
  { task: index, member }: { readonly task: number; readonly member: number },
  signal: AbortSignal,
  key: readonly (string | number)[] = [],
): Promise<EpisodeTree> {
  const { maxRetries: retries = rolloutDefaults.maxRetries, maxBranches: forks = rolloutDefaults.maxBranches } = setup
  const family = { random: setup.random.derive(index, member, ...key), forks, retries, signal }
  return await playFamily(family, async (random: Random, course: Course, place: FamilyPlace) => {
    const observe =
      onStep && ((step: EpisodeStep, at: number) => onStep(step, { task: index, member, ...place, step: at }))
    const own = { ...setup, task, random, signal }
    if (agentLoop) return await runAgent({ ...own, agentLoop, index, member }, observe)
    return await runCourse({ ...own, environment: environment!, hooks }, course, observe)
  })
}
