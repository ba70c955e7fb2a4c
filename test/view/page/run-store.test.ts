import { describe, expect, it } from "vitest"
import type { IterationReport } from "../../../src/runs/report.ts"
import { Random } from "../../../src/util/random.ts"
import type { RunInfo, Source } from "../../../src/view/data/source.ts"
import { RunStore } from "../../../src/view/page/run-store.ts"
import { sharedSource } from "../../../src/view/page/shared-source.ts"
import { madeRun } from "../made-run.ts"

/** A source of one run whose reports a test changes as it likes; each change that is no addition gives it a new age. */
class Changing {
  readonly reports: IterationReport[] = []
  age = 0
  state: RunInfo["state"] = "running"
  broken = false
  deleted = false
  readonly asked: string[] = []

  get info(): RunInfo {
    return { ...madeRun("0", 1, 1).info, state: this.state, iteration: this.reports.at(-1)?.iteration ?? 0 }
  }

  readonly source: Source = {
    live: true,
    runs: async () => this.#answer("runs", this.deleted ? [] : [this.info]),
    reports: async (_, cursor = "") => {
      if (this.deleted) return this.#answer("reports", undefined)
      const [age, known] = cursor.split(" ").map(Number)
      const reset = age !== this.age || cursor === ""
      const reports = this.reports.slice(reset ? 0 : known)
      return this.#answer("reports", { run: this.info, cursor: `${this.age} ${this.reports.length}`, reset, reports })
    },
    episodes: async (_, cursor) => this.#answer(`episodes ${cursor}`, madeRun("0", 1, 1).episodes),
    overview: async () => undefined,
    search: async () => undefined,
    group: async () => undefined,
  }

  #answer<Value>(what: string, value: Value): Value {
    this.asked.push(what)
    if (this.broken) throw new Error("gone")
    return value
  }
}

const store = async (changing: Changing) => new RunStore(changing.source, await changing.source.runs())

describe("the runs that a page knows", () => {
  it("have the reports that their folder has, however it changes", async () => {
    const random = new Random(3)
    const changing = new Changing()
    const runs = await store(changing)
    for (let round = 0; round < 400; round += 1) {
      const last = changing.reports.at(-1)?.iteration ?? 0
      const change = random.below(8)
      if (change < 5) changing.reports.push({ iteration: last + 1, metrics: { "a/b": random.uniform() } })
      else if (change === 5 && last > 0) {
        // Evaluated: the last line is written anew.
        changing.reports.push({ ...changing.reports.pop()!, metrics: { "a/b": -1 } })
        changing.age += 1
      } else if (change === 6) {
        changing.reports.splice(random.below(last + 1))
        changing.age += 1
      }
      changing.broken = random.below(6) === 0
      if (random.below(2) === 0) await runs.refresh({ all: random.below(2) === 0 }).catch(() => {})
      changing.broken = false
      if (random.below(4) > 0) continue
      await runs.reports("0")
      await runs.refresh({ all: false })
      expect(await runs.reports("0")).toEqual(changing.reports)
    }
  })

  it("are asked once by all who want the same, and again when that failed", async () => {
    const changing = new Changing()
    const runs = await store(changing)
    changing.broken = true
    await expect(runs.reports("0")).rejects.toThrow("gone")
    changing.broken = false
    changing.asked.length = 0
    await Promise.all([runs.reports("0"), runs.reports("0")])
    await runs.reports("0")
    expect(changing.asked).toEqual(["reports"])
  })

  it("tell who listens of what has changed, and of nothing else, until he leaves", async () => {
    const changing = new Changing()
    const runs = await store(changing)
    await runs.reports("0")
    const left = new AbortController()
    let told = 0
    runs.subscribe(() => {
      told += 1
    }, left.signal)
    await runs.refresh({ all: true })
    expect(told).toBe(0)
    changing.reports.push({ iteration: 1, metrics: {} })
    await runs.refresh({ all: false })
    expect(told).toBe(1)
    changing.state = "done"
    await runs.refresh({ all: false })
    expect([told, runs.runs[0]!.state]).toEqual([2, "done"])
    changing.asked.length = 0
    await runs.refresh({ all: false })
    expect(changing.asked).toEqual([]) // a run that is done is left alone
    left.abort()
    runs.show("0", false)
    expect(told).toBe(2)
  })

  it("are marked when their folder is removed, keep their curves, and come back with it", async () => {
    for (const all of [true, false]) {
      const changing = new Changing()
      const runs = await store(changing)
      changing.reports.push({ iteration: 1, metrics: { "a/b": 1 } })
      await runs.reports("0")
      let told = 0
      runs.subscribe(() => {
        told += 1
      }, new AbortController().signal)
      changing.deleted = true
      await runs.refresh({ all })
      expect([runs.runs.map(({ state }) => state), told]).toEqual([["deleted"], 1])
      expect(await runs.reports("0")).toEqual(changing.reports)
      changing.asked.length = 0
      await runs.refresh({ all: false })
      expect(changing.asked).toEqual([])
      changing.deleted = false
      await runs.refresh({ all: true })
      expect([runs.runs.map(({ state }) => state), told]).toEqual([["running"], 2])
    }
  })

  it("are shown until somebody says otherwise, and never none of them", async () => {
    const infos = Array.from({ length: 12 }, (_, id) => madeRun(String(id), 1, 1).info)
    const runs = new RunStore(new Changing().source, infos)
    expect(runs.shown.map(({ id }) => id)).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"])
    for (const { id } of infos) runs.show(id, id === "9")
    expect(runs.shown.map(({ id }) => id)).toEqual(["9"])
    runs.show("9", false)
    expect(runs.shown.map(({ id }) => id)).toEqual(["0"])
  })

  it("give all episodes once, until the run has gone on", async () => {
    const changing = new Changing()
    const runs = await store(changing)
    const source = sharedSource(changing.source, runs)
    changing.asked.length = 0
    expect(await source.episodes("0")).toBe(await source.episodes("0"))
    await source.episodes("0", "7")
    expect(changing.asked).toEqual(["episodes undefined", "episodes 7"])
    changing.reports.push({ iteration: 1, metrics: {} })
    await runs.refresh({ all: true })
    changing.asked.length = 0
    changing.broken = true
    await expect(source.episodes("0")).rejects.toThrow("gone")
    changing.broken = false
    await source.episodes("0")
    expect(changing.asked).toEqual(["episodes undefined", "episodes undefined"])
  })
})
