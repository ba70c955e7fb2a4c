import { readFileSync } from "node:fs"
import type { Inlined } from "../../../src/view/data/inlined.ts"
import type { RecordedGroup } from "../../../src/view/data/recorded.ts"

import { columnsOf } from "../made-run.ts"

/** Played by an expert that errs often, with GiGPO's credit. */
export function recordedGroup(name: "sokoban" | "household"): RecordedGroup {
  return JSON.parse(readFileSync(`test/fixtures/view/${name}-group.json`, "utf8"))
}

/** A run that has these groups and nothing else. */
export function runOf(groups: readonly RecordedGroup[], id = "0"): Inlined["runs"][number] {
  const iteration = Math.max(...groups.map((group) => group.iteration))
  const info = { id, name: `runs/${id}`, state: "done" as const, iteration, settings: {} }
  return {
    info,
    groups,
    reports: { run: info, cursor: "", reset: true, reports: [] },
    episodes: columnsOf(groups),
  }
}
