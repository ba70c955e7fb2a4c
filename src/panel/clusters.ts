import { wilsonInterval } from "../training/wilson.ts"

/**
 * 95 % interval of the share of successes where each task was played several times. Episodes of a task are a cluster: they tell less than
 * as many of other tasks. So it is Wilson's interval with the effective number of episodes, p (1 - p) over the variance of the mean of the
 * tasks' shares (Korn and Graubard, Survey Methodology 1998), at least the number of tasks and at most that of episodes. With one
 * episode a task it is Wilson's interval itself.
 *
 * @param solved - successes of each task, [tasks].
 * @param repeats - episodes of each.
 */
export function clusterInterval(solved: readonly number[], repeats: number): [number, number] {
  const [tasks, episodes] = [solved.length, solved.length * repeats]
  const total = solved.reduce((sum, count) => sum + count, 0)
  const share = total / episodes
  const variance = solved.reduce((sum, count) => sum + (count / repeats - share) ** 2, 0) / tasks ** 2
  // Where all tasks are alike nothing tells how much their episodes are.
  const certain = share === 0 || share === 1
  const effective = certain ? tasks : Math.min(Math.max((share * (1 - share)) / variance, tasks), episodes)
  return wilsonInterval(total * (effective / episodes), effective)
}

/**
 * The chance that at least one of k episodes of a task succeeds, without bias from the c of n that did: 1 - C(n - c, k) / C(n, k) (Chen et
 * al., arXiv 2107.03374), in the product form that does not overflow; the mean over tasks, for k = 1 … n.
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
