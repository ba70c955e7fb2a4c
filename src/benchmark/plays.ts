import { setMaxListeners } from "node:events"
import type { Environment, Observation, PastStep } from "../environment/environment.ts"
import { expertCompletions, randomActions } from "../rollout/choosers.ts"
import { startEpisode } from "../rollout/environment-episode.ts"
import { together } from "../rollout/groups.ts"
import { rolloutDefaults } from "../rollout/options.ts"
import { type ActionSelector, type Played, playTurns } from "../rollout/turns.ts"
import { linkAbort } from "../util/linked-abort.ts"
import { Pace } from "../util/pace.ts"
import { Random } from "../util/random.ts"
import type { BenchmarkTask } from "./tasks.ts"

// The digest of a benchmark covers the rules of its environment by playing its tasks: once with the expert, if there is one, and once with
// reproducible random actions and completions, some of which cannot be parsed. Changed rules change the responses in these plays.

/** One episode of a task: completions, actions and the responses of the environment. */
export interface Play {
  readonly task: BenchmarkTask
  readonly turns: readonly Played[]
  readonly last: Observation
}

/** Completions in all formats that environments parse, and unparsable ones. */
export const fixedCompletions: readonly string[] = [
  "",
  "look",
  "<think>hm</think><action>look</action>",
  "<action>LOOK</action> and more",
  "<action>  go to shelf 1 </action><action>inventory</action>",
  "<think>hm</think><action>click[back to search]</action>",
  "<think>hm</think><action>search[red shoes]</action>",
  "<think>hm</think><action>up</action>",
  '{"thoughts": "hm", "action": "+"}',
  '```json\n{"thoughts": "hm", "action": "stand"}\n```',
  "<think>hm</think><action>1</action>",
  "<think>hm</think><search> who founded it </search>",
  "<think>hm</think><answer> nobody </answer>",
  "<sql>SELECT count(*) FROM item</sql>",
  "<think>把</think><action>look</action>",
  "<action>look",
]

/** Maximum number of steps of a play. */
const mostSteps = 100
/** One of this many completions is taken from `fixedReplies`, the others are random actions. */
const fixedOf = 6

/**
 * Plays the tasks with limited concurrency, each with fixed random numbers. Returns the plays in the order of the tasks, the expert's play
 * of a task first.
 */
export async function playTasks(
  environment: Environment,
  tasks: readonly BenchmarkTask[],
  concurrency: number,
  signal?: AbortSignal,
): Promise<Play[]> {
  const stop = new AbortController()
  setMaxListeners(0, stop.signal) // one listener per episode in progress
  const unlink = linkAbort(signal, stop)
  const stage: Stage = { environment, rest: oneByOne(new Pace(stop.signal)), signal: stop.signal }
  const plays: Play[][] = []
  let next = 0
  const runner = async () => {
    while (next < tasks.length) {
      const index = next++
      plays[index] = await playTask(stage, tasks[index]!)
    }
  }
  try {
    await together(Array.from({ length: Math.min(concurrency, tasks.length) }, runner), stop)
    return plays.flat()
  } finally {
    unlink()
  }
}

interface Stage {
  readonly environment: Environment
  /** Yields to other work of the event loop if the last pause is long ago. */
  readonly rest: () => Promise<void>
  readonly signal: AbortSignal
}

/** Serializes the pauses of concurrent plays, which would otherwise all resume in the same turn of the event loop. */
function oneByOne(pace: Pace): () => Promise<void> {
  let last = Promise.resolve()
  return () => {
    if (pace.due()) last = last.then(() => pace.rest())
    return last
  }
}

async function playTask(stage: Stage, task: BenchmarkTask): Promise<Play[]> {
  const random = new Random(0).derive("panel play", task.key)
  const atRandom = await playOne(stage, task, randomCompletions(random.derive("dice")), random)
  const expert = stage.environment.expert?.(task.task)
  return expert ? [await playOne(stage, task, expertCompletions(expert), random), atRandom] : [atRandom]
}

async function playOne(
  { environment, rest, signal }: Stage,
  task: BenchmarkTask,
  choose: ActionSelector<Played["choice"], "stopped">,
  random: Random,
): Promise<Play> {
  await rest()
  const { environmentTimeout } = rolloutDefaults
  await using episode = await startEpisode({ environment, task: task.task, random, environmentTimeout, signal })
  const played = playTurns(episode, choose, { maxTurns: mostSteps })
  const turns: Played[] = []
  for (;;) {
    await rest()
    const { done, value } = await played.next()
    if (done) return { task, turns, last: value.last }
    turns.push(value)
  }
}

function randomCompletions(random: Random): ActionSelector {
  const act = randomActions(random)
  return async (situation) => {
    if (situation.now.actions && random.below(fixedOf) > 0) return await act(situation)
    const text = fixedCompletions[random.below(fixedCompletions.length)]!
    return { ...(await situation.parse(text)), text }
  }
}

/** History before each turn of a play. */
export function historyOf({ turns }: Play): PastStep[] {
  return turns.map(({ observation, choice: { text, action } }) => ({ observation, completion: text, action }))
}

/** Tasks with the kinds that the plays report. */
export function withKinds(tasks: readonly BenchmarkTask[], plays: readonly Play[]): BenchmarkTask[] {
  const prefix = "success/"
  const kinds = new Map<BenchmarkTask, string>()
  for (const { task, turns } of plays) {
    const names = turns.flatMap(({ result }) => Object.keys(result.metrics ?? {}))
    const name = names.find((one) => one.startsWith(prefix))
    if (name !== undefined) kinds.set(task, name.slice(prefix.length))
  }
  return tasks.map((task) => (kinds.has(task) ? { ...task, kind: kinds.get(task) } : task))
}
