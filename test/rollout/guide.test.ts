import { describe, expect, it } from "vitest"
import { branchAt } from "../../src/rollout/hooks/branch-at.ts"
import type { RolloutHooks } from "../../src/rollout/hooks.ts"
import { rollout } from "../../src/rollout/rollout.ts"
import { type DoorsTask, doorsEnvironment } from "./doors.ts"
import { rolloutSetup, takeDoors, useTokenizer } from "./setup.ts"

const tokenizer = useTokenizer()
const patient = doorsEnvironment({
  step: async (action, episode) => ({ ...(await episode.step(action)), terminated: false }),
})
const play = async (hooks: RolloutHooks<DoorsTask>) => {
  const setup = rolloutSetup(tokenizer.get(), { hooks, environment: patient, maxSteps: 3, tasks: takeDoors(2) })
  return (await rollout(setup)).groups
}

describe("guide", () => {
  it("plays additional rollouts with the turn hooks of the training", async () => {
    let sampled = 0
    const groups = await play({
      start: () => ({ hint: "Of start." }),
      async sample({ request, sample }) {
        sampled++
        return { ...(await sample(request)), forced: new Uint8Array(2) }
      },
      candidates: () => ({ count: 2, score: ({ text }) => text.length }),
      guide: async (_, { rollout }) => await rollout({ hint: "Of guide." }),
    })
    const steps = groups.flatMap(({ episodes }) => episodes).flatMap((episode) => episode.steps)
    expect(steps).toHaveLength(2 * 4 * 3)
    for (const { prompt, forced, candidates } of steps) {
      expect(tokenizer.get().decode(prompt)).toContain("Of guide.")
      expect(forced).toEqual(new Uint8Array(2))
      expect(candidates).toHaveLength(1)
    }
    expect(sampled).toBe(2 * 2 * steps.length) // those that the guided ones stand for were played, too
  })

  it.each([
    ["all of both", 0, 0, 16],
    ["some of both", 1, 2, 10],
  ])("numbers the parents of branches anew where the group has %s", async (_, before, after, expected) => {
    const groups = await play({
      ...(branchAt({ step: 1, branchingFactor: 2 }) as RolloutHooks<DoorsTask>),
      async guide({ episodes }, { rollout }) {
        const guided = await rollout({ hint: "Go on." })
        return [...guided.slice(after), ...episodes.slice(before)]
      },
    })
    let branches = 0
    for (const { episodes } of groups) {
      expect(episodes).toHaveLength(16 - before - after)
      for (const { branch, steps } of episodes) {
        if (!branch) continue
        branches++
        expect(steps[0]).toBe(episodes[branch.of]!.steps[0])
      }
    }
    expect(branches).toBe(expected)
  })
})
