import { boolean, integer, oneOf } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import type { Episode } from "../../rollout/episode.ts"
import type { Curriculum } from "./curriculum.ts"
import { expertActions, isSuccess } from "./expert-actions.ts"

export const actGuideCurriculumFields = {
  probes: integer(4, "Most rollouts in which the length of a hint is searched for.", { min: 1 }),
  guided: oneOf(
    "replace",
    ["replace", "add"],
    "Whether guided episodes stand in place of those that failed, or beside them.",
  ),
  offPolicy: boolean(
    true,
    "Learn from guided episodes without the hint, as the loss act-guide weighs them. Without this their rows hold the hint.",
  ),
}

/** Options of `actGuideCurriculum`. */
export type ActGuideCurriculumOptions = OptionsOf<typeof actGuideCurriculumFields>

/**
 * ActGuide-RL's guidance (AMAP-ML/ActGuide-RL): where no episode of a group succeeds, its task is played again with a hint, the first k
 * actions of a reference as a plan. A binary search of at most 4 rollouts finds the smallest k with any success, whose episodes are
 * learned from; `loss.name: act-guide` goes with it.
 *
 * Our reading: the reference is the environment's expert, a rollout of the search has as many episodes as a group, the first k is
 * the middle of its actions, and a group that no hint helps stays as it is. The plan's words are ours.
 */
export function actGuideCurriculum(given: ActGuideCurriculumOptions = {}): Curriculum {
  const { probes, guided, offPolicy } = readOptions("actGuideCurriculum", given, actGuideCurriculumFields)
  return {
    name: "act-guide",
    open(setup) {
      const solve = expertActions("act-guide", setup)
      return {
        async guide({ task, episodes }, { play }) {
          if (episodes.some(isSuccess)) return undefined
          const actions = (await solve(task)) ?? []
          const found = await smallestHint(actions.length, probes, async (count) => {
            const played = await play({ hint: planOf(actions.slice(0, count)), offPolicy })
            return played.some(isSuccess) ? played : undefined
          })
          return found && guided === "add" ? [...episodes, ...found] : found
        },
      }
    },
  }
}

/** What the shortest hint that helps gave, by binary search in so many probes; undefined where none of them helped. */
export async function smallestHint<Found extends readonly Episode[] | number>(
  longest: number,
  probes: number,
  probe: (count: number) => Promise<Found | undefined>,
): Promise<Found | undefined> {
  let [low, high] = [1, longest]
  let shortest: Found | undefined
  for (let probed = 0; probed < probes && low <= high; probed++) {
    const count = Math.floor((low + high) / 2)
    const found = await probe(count)
    if (found === undefined) low = count + 1
    else {
      shortest = found
      high = count - 1
    }
  }
  return shortest
}

function planOf(actions: readonly string[]): string {
  return `A plan that leads part of the way:\n${actions.map((action, index) => `${index + 1}. ${action}`).join("\n")}`
}
