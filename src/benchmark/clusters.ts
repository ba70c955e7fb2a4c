import { wilsonInterval } from "../training/wilson.ts"

/**
 * Returns the 95 % interval of the success rate where each task was played several times. Episodes of a task are a cluster, with less
 * information than as many episodes of other tasks. The interval is Wilson's with the effective number of episodes, p (1 - p) divided by
 * the variance of the mean of the tasks' success rates (Korn and Graubard, Survey Methodology 1998). The effective number is at least the
 * number of tasks and at most the number of episodes. With one episode per task, the interval is Wilson's.
 *
 * @param solved - number of successes of each task, [tasks].
 * @param repeats - number of episodes per task.
 */
export function clusterInterval(solved: readonly number[], repeats: number): [number, number] {
  const [tasks, episodes] = [solved.length, solved.length * repeats]
  const total = solved.reduce((sum, count) => sum + count, 0)
  const share = total / episodes
  const variance = solved.reduce((sum, count) => sum + (count / repeats - share) ** 2, 0) / tasks ** 2
  // The variance over tasks is 0 here, which contains no information about the correlation of episodes.
  const certain = share === 0 || share === 1
  const effective = certain ? tasks : Math.min(Math.max((share * (1 - share)) / variance, tasks), episodes)
  return wilsonInterval(total * (effective / episodes), effective)
}

/**
 * Returns the probability that at least one of k episodes of a task succeeds, for k = 1 … n, as a mean over tasks. The unbiased estimate
 * from c successes of n is 1 - C(n - c, k) / C(n, k) (Chen et al., arXiv 2107.03374), in the product form that does not overflow.
 */
export function passAtK(solved: readonly number[], repeats: number): number[] {
  return Array.from({ length: repeats }, (_, index) => {
    const chances = solved.map((count) => {
      let none = 1
      for (let i = repeats - count + 1; i <= repeats; i++) none *= Math.max(1 - (index + 1) / i, 0)
      return 1 - none
    })
    return chances.reduce((sum, chance) => sum + chance, 0) / solved.length
  })
}
