import { describe, expect, it, vi } from "vitest"
import type { RecordedGroup } from "../../../src/view/data/recorded.ts"
import { searchEpisodes } from "../../../src/view/serve/search-episodes.ts"
import { madeReader } from "../made-reader.ts"
import { madeGroup } from "../made-run.ts"

const recorded = [1, 2, 5].flatMap((iteration) => [0, 1].map((group) => madeGroup(iteration, group)))
const reader = madeReader(() => recorded)
const changed = (change: (group: RecordedGroup) => RecordedGroup) => madeReader(() => recorded.map(change))

describe("a search in the texts of episodes", () => {
  it("finds observations, completions, actions and last observations, the newest iterations first", async () => {
    const { matches, next } = await searchEpisodes(reader, "run", "IN ROOM 4")
    const solved = recorded.flatMap(({ iteration, group, episodes }) =>
      episodes
        .filter((one) => one.return === 1)
        .map(({ member, steps }) => ({ iteration, group, member, step: steps.length - 1 })),
    )
    expect(matches.map(({ iteration }) => iteration)).toEqual(
      matches.map(({ iteration }) => iteration).sort((a, b) => b - a),
    )
    expect(new Set(matches.map((one) => JSON.stringify(one)))).toEqual(
      new Set(solved.map((one) => JSON.stringify(one))),
    )
    expect(next).toBeUndefined()
    const left = await searchEpisodes(reader, "run", "<think>go on</think>left")
    for (const { iteration, group, member, step } of left.matches) {
      const { steps } = recorded.find((one) => one.iteration === iteration && one.group === group)!.episodes[member]!
      expect(steps.findIndex(({ action }) => action === "left")).toBe(step)
    }
    expect(left.matches.length).toBeGreaterThan(3)
    expect((await searchEpisodes(reader, "run", "nowhere")).matches).toEqual([])
  })

  it("is continued where its time was over, and leaves out what cannot be read", async () => {
    vi.spyOn(performance, "now").mockImplementation(
      (
        (time) => () =>
          (time += 1000)
      )(0),
    )
    const first = await searchEpisodes(reader, "run", "room 0")
    expect([new Set(first.matches.map(({ iteration }) => iteration)), first.next]).toEqual([new Set([5]), 5])
    const second = await searchEpisodes(reader, "run", "room 0", 5)
    expect([new Set(second.matches.map(({ iteration }) => iteration)), second.next]).toEqual([new Set([2]), 2])
    const last = await searchEpisodes(reader, "run", "room 0", 2)
    expect([new Set(last.matches.map(({ iteration }) => iteration)), last.next]).toEqual([new Set([1]), undefined])
    vi.restoreAllMocks()
    const many = changed((group) => ({
      ...group,
      episodes: Array.from({ length: 300 }, (_, member) => ({ ...group.episodes[0]!, member })),
    }))
    expect(await searchEpisodes(many, "run", "room 0")).toMatchObject({ matches: { length: 600 }, next: 5 })
  })
})
