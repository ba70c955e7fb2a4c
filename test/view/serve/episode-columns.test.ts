import { describe, expect, it } from "vitest"
import { GigpoError } from "../../../src/util/errors.ts"
import { Random } from "../../../src/util/random.ts"
import { episodeTable } from "../../../src/view/data/episode-table.ts"
import type { RecordedGroup } from "../../../src/view/data/recorded.ts"
import { type EpisodePage, problemCounts } from "../../../src/view/data/source.ts"
import type { EpisodesRange } from "../../../src/view/record/read.ts"
import { readEpisodesSince } from "../../../src/view/serve/episode-columns.ts"
import { madeReader } from "../made-reader.ts"
import { madeGroup, madeRun } from "../made-run.ts"

let recorded: RecordedGroup[] = []
const reader = madeReader(() => recorded)
const ask = (cursor?: string) => readEpisodesSince(reader, "run", cursor)
const groups = (...iterations: number[]) => iterations.flatMap((one) => [0, 1, 2].map((group) => madeGroup(one, group)))

describe("the episodes of a run", () => {
  it("are columns, in the order of iterations, groups and members", async () => {
    const { episodes, groups } = madeRun("0", 4, 3)
    recorded = [...groups]
    expect(await ask()).toEqual({ ...episodes, cursor: expect.any(String) })
  })

  it("say which iterations cannot be read", async () => {
    recorded = groups(1, 2, 4)
    const broken = {
      ...reader,
      async readRecordedIterations(run: string, range: EpisodesRange = {}) {
        for (const iteration of [3, 5])
          if (iteration >= (range.from ?? 1)) range.onUnreadable?.(new GigpoError("RUN_CORRUPT", "broken"), iteration)
        return await reader.readRecordedIterations(run, range)
      },
    }
    const told: number[] = []
    const tell = (_: GigpoError, iteration: number) => told.push(iteration)
    const page = await readEpisodesSince(broken, "run", undefined, tell)
    expect([page.unreadable, told]).toEqual([
      [3, 5],
      [3, 5],
    ])
    const table = episodeTable(page)
    expect(await readEpisodesSince(broken, "run", page.cursor)).toMatchObject({ reset: false, unreadable: [5] })
    recorded = groups(1, 2, 4, 6)
    const newer = await readEpisodesSince(broken, "run", page.cursor)
    expect(newer).toMatchObject({ reset: false, unreadable: [5] })
    expect(episodeTable(newer, table).unreadable).toEqual([3, 5])
  })

  it("come as they are recorded, and anew after a step back, with a new run, or when old ones are removed", async () => {
    recorded = []
    const none = await ask()
    expect(none).toMatchObject({ reset: true, iteration: [], tasks: [] })
    expect(await ask(none.cursor)).toMatchObject({ reset: false, iteration: [] })
    recorded = groups(1, 2)
    const { cursor } = await ask()
    recorded = groups(1, 2, 4)
    expect(await ask(cursor)).toMatchObject({ reset: false, iteration: Array(24).fill(4) })
    const newer = await ask(cursor)
    for (const now of [groups(1, 2), groups(2, 4), groups(1, 2, 5), [], groups(1, 2, 4).map((one) => other(one))]) {
      recorded = now
      expect(await ask(newer.cursor)).toMatchObject({
        reset: true,
        iteration: now.flatMap(({ iteration }) => Array(8).fill(iteration)),
      })
    }
    for (const wrong of ["", "1.2", "x.y.z", "1.99999999999999999999.0", "1.-1.0"])
      expect(await ask(wrong)).toMatchObject({ reset: true })
  })

  it.each([1, 2, 3, 4, 5])("are such that whoever adds them up holds all (%i)", async (seed) => {
    const random = new Random(seed)
    let [last, times] = [0, 0]
    recorded = []
    let held: EpisodePage | undefined
    for (let turn = 0; turn < 60; turn++) {
      const action = random.below(6)
      if (action < 3)
        recorded.push(
          ...[0, 1]
            .map((group) => other(madeGroup(++last, group), times++))
            .map((one) => ({ ...one, iteration: last })),
        )
      else if (action === 3) {
        last = random.below(last + 1)
        recorded = recorded.filter(({ iteration }) => iteration <= last)
      } else if (action === 4) recorded = recorded.filter(({ iteration }) => iteration > last - 3)
      if (random.below(2) === 0) continue
      const page = await ask(held?.cursor)
      held = page.reset || !held ? page : added(held, page)
      const { cursor: _, reset: __, task: places, tasks, ...all } = await ask()
      expect(held).toMatchObject(all)
      expect(held.task.map((place) => held!.tasks[place])).toEqual(places.map((place) => tasks[place]))
    }
  })
})

/** The same episodes, played otherwise. */
function other(group: RecordedGroup, times = 7): RecordedGroup {
  return { ...group, episodes: group.episodes.map((episode) => ({ ...episode, return: times })) }
}

function added(held: EpisodePage, page: EpisodePage): EpisodePage {
  const columns = ["iteration", "group", "member", "outcome", "success", "return", "steps", "tokens"] as const
  const problems = problemCounts.map((name) => [name, [...held.problems[name], ...page.problems[name]]])
  return {
    ...page,
    ...(Object.fromEntries(columns.map((name) => [name, [...held[name], ...page[name]]])) as unknown as EpisodePage),
    task: [...held.task, ...page.task.map((place) => place + held.tasks.length)],
    tasks: [...held.tasks, ...page.tasks],
    problems: Object.fromEntries(problems),
  }
}
