import { readFileSync } from "node:fs"
import type { Inlined } from "../../../src/view/data/inlined.ts"
import type { RecordedGroup } from "../../../src/view/data/recorded.ts"

/** Played by an expert that errs often, with GiGPO's credit. */
export function recordedGroup(name: "sokoban" | "household"): RecordedGroup {
  return JSON.parse(readFileSync(`test/fixtures/view/${name}-group.json`, "utf8"))
}

/** A run that has these groups and nothing else. */
export function runOf(groups: readonly RecordedGroup[], id = "0"): Inlined["runs"][number] {
  const flat = groups.flatMap((group) => group.episodes.map((episode) => ({ group, episode })))
  const iteration = Math.max(...groups.map((group) => group.iteration))
  const info = { id, name: `runs/${id}`, state: "done" as const, iteration, settings: {} }
  const tasks = [...new Set(groups.map(({ task }) => JSON.stringify(task)))]
  return {
    info,
    groups,
    reports: { run: info, cursor: "", reset: true, reports: [] },
    episodes: {
      cursor: "",
      reset: true,
      iteration: flat.map(({ group }) => group.iteration),
      group: flat.map(({ group }) => group.group),
      member: flat.map(({ episode }) => episode.member),
      task: flat.map(({ group }) => tasks.indexOf(JSON.stringify(group.task))),
      outcome: flat.map(({ episode }) => ["terminated", "truncated"].indexOf(episode.outcome)),
      success: flat.map(({ episode }) => episode.metrics.success ?? null),
      return: flat.map(({ episode }) => episode.return),
      steps: flat.map(({ episode }) => episode.steps.length),
      tokens: flat.map(() => 1),
      tasks,
    },
  }
}
