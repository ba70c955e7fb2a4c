import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, vi } from "vitest"
import { branchAt } from "../../src/rollout/hooks/branch-at.ts"
import type { Group, RolloutHooks } from "../../src/rollout/hooks.ts"
import { Run } from "../../src/runs/run.ts"
import type { RunObserver } from "../../src/training/observers.ts"
import type { TrainSetup } from "../../src/training/prepare.ts"
import { train } from "../../src/training/train.ts"
import { tableSetup } from "./table-setup.ts"

// Hooks of turns as an option of training: by name, or of one's own, before the hooks that are handed in.

async function played(given: Partial<TrainSetup>) {
  const groups: (readonly Group[])[] = []
  const observer: RunObserver = { name: "all", episodes: (_, told) => void groups.push(told) }
  const setup = { ...tableSetup(), iterations: 2, groups: 2, groupSize: 3, observers: [observer], ...given }
  await train(setup as never)
  return { groups, logits: (setup.policy as { logits?: unknown }).logits }
}

const rollout = { maxCompletionTokens: 2, maxBranches: 2 }

describe("turns", () => {
  it("by name are the hooks with that name", async () => {
    const named = await played({ rollout, rolloutHooks: { name: "branch-at", step: 0, branchingFactor: 3 } })
    const handed = await played({ rollout, hooks: branchAt({ step: 0, branchingFactor: 3 }) })
    expect(named).toEqual(handed)
    expect(named.groups[0]![0]!.episodes.length).toBeGreaterThan(3)
  })

  it("decide before custom hooks, which decide if these accept", async () => {
    const asked: number[] = []
    const hooks: RolloutHooks = {
      onTurn({ index }) {
        asked.push(index)
        return { kind: "accept" }
      },
    }
    await played({ rollout, rolloutHooks: { name: "branch-at", step: 0, branchingFactor: 2 }, hooks: hooks as never })
    expect(asked.length).toBeGreaterThan(0)
    expect(asked.includes(0)).toBe(false)
  })

  it("that are custom keep their state over a resume", async () => {
    const counting = () => {
      let turns = 0
      return {
        onTurn: () => {
          turns++
          return { kind: "accept" as const }
        },
        state: () => ({ json: turns }),
        restore({ json }: { json?: unknown }) {
          turns = json as number
        },
        count: () => turns,
      }
    }
    const folder = await mkdtemp(join(tmpdir(), "gigpo-turns-"))
    try {
      const setup = { ...tableSetup(), iterations: 2, checkpointEvery: 1 }
      const first = counting()
      {
        await using run = await Run.open(join(folder, "run"), {})
        for await (const { iteration } of train({ ...setup, run, rolloutHooks: first } as never))
          if (iteration === 1) break
      }
      expect(first.count()).toBeGreaterThan(0)
      const second = counting()
      await using run = await Run.open(join(folder, "run"), {}, { resume: true })
      await train({ ...setup, ...tableSetup(), run, rolloutHooks: second } as never)
      const alone = counting()
      await train({ ...setup, ...tableSetup(), rolloutHooks: alone } as never)
      expect(second.count()).toBe(alone.count())
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it("that are invalid are rejected before the first episode", async () => {
    await expect(played({ rolloutHooks: { name: "t2p" } as never })).rejects.toThrow(
      /rolloutHooks\.name must be .*t2po/,
    )
    await expect(played({ rolloutHooks: { use: { turn: () => 1 } } as never })).rejects.toThrow(/must be hooks/)
    await expect(played({ rolloutHooks: { name: "branch-at", branchingFactor: 1 } })).rejects.toThrow(
      /rolloutHooks\.branchingFactor/,
    )
  })

  it.each(["oracle-candidates", "information-gain", "expert-progress"] as const)(
    "reject an environment that lacks a method of %s before anything is written or sampled",
    async (name) => {
      const { policy, environment, ...setup } = tableSetup()
      const bare = { ...(environment as object), expert: undefined }
      const sample = vi.spyOn(policy as never as { sample(): unknown }, "sample")
      const folder = await mkdtemp(join(tmpdir(), "gigpo-turns-"))
      try {
        await using run = await Run.open(join(folder, "run"), {})
        const before = await readdir(folder, { recursive: true })
        const refused = train({ ...setup, policy, environment: bare, run, rolloutHooks: { name } } as never)
        await expect(refused).rejects.toThrow(
          /needs the method \w+ of the environment.*built-in environments .* have it/,
        )
        expect(await readdir(folder, { recursive: true })).toEqual(before)
        expect(sample).not.toHaveBeenCalled()
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  )
})
