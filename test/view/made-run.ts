import { outcomes } from "../../src/rollout/outcome.ts"
import { Random } from "../../src/util/random.ts"
import type { Inlined } from "../../src/view/data/inlined.ts"
import type { RecordedGroup, RecordedStep } from "../../src/view/data/recorded.ts"
import type { EpisodePage } from "../../src/view/data/source.ts"

// A run that was never run, for the page alone: walks on a line of five rooms, of which the last is the goal.

export function madeGroup(iteration: number, group: number, members = 8): RecordedGroup {
  const random = new Random(iteration * 1000 + group)
  const walks = Array.from({ length: members }, () => {
    const rooms = [0]
    while (rooms.length < 8 && rooms.at(-1)! < 4)
      rooms.push(Math.max(rooms.at(-1)! + (random.below(3) === 0 ? -1 : 1), 0))
    return rooms
  })
  const returns = walks.map((rooms) => (rooms.at(-1) === 4 ? 1 : 0))
  const mean = returns.reduce((sum: number, one) => sum + one, 0) / members
  const episodes = walks.map((rooms, member) => {
    const success = returns[member]!
    const steps = rooms.slice(0, -1).map((room, step): RecordedStep => {
      const right = rooms[step + 1]! > room
      const completion = ["<think>", "go", " on", "</think>", right ? "right" : "left", "<|im_end|>"]
      const discountedReturn = success * 0.95 ** (rooms.length - 2 - step)
      return {
        observation: `You are in room ${room}.`,
        anchor: `room ${room}`,
        prompt: `<|im_start|>user\nYou are in room ${room}.<|im_end|>\n<|im_start|>assistant\n`,
        promptTokens: 14,
        completion,
        logProbs: completion.map((_, at) => -0.05 - at / 10),
        entropies: completion.map((_, at) => 0.1 + at / 8),
        advantage: success - mean + (right ? 0.2 : -0.2),
        action: right ? "right" : "left",
        valid: true,
        reward: step === rooms.length - 2 ? success : 0,
        finishReason: "stop",
        stepGroup: room + 10 * group,
        discountedReturn,
        episodeAdvantage: success - mean,
        stepAdvantage: right ? 0.2 : -0.2,
      }
    })
    const end = `You are in room ${rooms.at(-1)}.`
    return {
      member,
      outcome: success ? ("terminated" as const) : ("truncated" as const),
      return: success,
      metrics: { success },
      last: { text: end, anchor: `room ${rooms.at(-1)}` },
      steps,
    }
  })
  return { iteration, group, task: { seed: group }, episodes }
}

/** `iterations` of `groups` tasks each. */
export function madeRun(id: string, iterations: number, groups: number): Inlined["runs"][number] {
  const all = Array.from({ length: iterations * groups }, (_, at) =>
    madeGroup(1 + Math.floor(at / groups), at % groups),
  )
  const flat = all.flatMap((group) => group.episodes.map((episode) => ({ group, episode })))
  const reports = Array.from({ length: iterations }, (_, at) => {
    const played = flat.filter(({ group }) => group.iteration === at + 1).map(({ episode }) => episode)
    const success = played.reduce((sum, { return: one }) => sum + one, 0) / played.length
    return {
      iteration: at + 1,
      time: new Date(Date.UTC(2026, 0, 1, 0, at)).toISOString(),
      metrics: {
        "episode/success": success,
        "episode/return": success,
        "episode/count": played.length,
        "loss/policy": 1 / (at + 2),
        "time/rollout": 2 + Math.sin(at),
        "time/advantage": 0.1,
        "time/update": 3 + Math.cos(at),
        "time/run": 5 * (at + 1),
      },
    }
  })
  const info = {
    id,
    name: `runs/${id}`,
    state: "done" as const,
    iteration: iterations,
    iterations,
    settings: { seed: Number.parseInt(id, 10) || 0, "training.estimator.name": "gigpo", "training.estimator.omega": 1 },
  }
  return { info, reports: { run: info, cursor: "", reset: true, reports }, groups: all, episodes: columnsOf(all) }
}

/** What a source tells of groups in short. */
export function columnsOf(groups: readonly RecordedGroup[]): EpisodePage {
  const flat = groups.flatMap((group) => group.episodes.map((episode) => ({ group, episode })))
  const names = groups.map(({ task }) => JSON.stringify(task))
  const tasks = [...new Set(names)]
  const places = new Map(groups.map((group, at) => [group, tasks.indexOf(names[at]!)]))
  return {
    cursor: "",
    reset: true,
    iteration: flat.map(({ group }) => group.iteration),
    group: flat.map(({ group }) => group.group),
    member: flat.map(({ episode }) => episode.member),
    task: flat.map(({ group }) => places.get(group)!),
    outcome: flat.map(({ episode }) => outcomes.indexOf(episode.outcome)),
    success: flat.map(({ episode }) => episode.metrics.success ?? null),
    return: flat.map(({ episode }) => episode.return),
    steps: flat.map(({ episode }) => episode.steps.length),
    tokens: flat.map(({ episode }) => episode.steps.reduce((sum, { completion }) => sum + completion.length, 0)),
    tasks,
    problems: {
      invalid: flat.map(({ episode }) => episode.steps.filter(({ valid }) => !valid).length),
      truncated: flat.map(
        ({ episode }) => episode.steps.filter(({ finishReason }) => finishReason === "length").length,
      ),
      revisits: flat.map(({ episode: { steps } }) => steps.length - new Set(steps.map(({ anchor }) => anchor)).size),
      rejected: flat.map(() => 0),
    },
    unreadable: [],
  }
}
