import type { Credit } from "../../credit/estimator.ts"
import { textOf } from "../../json/text.ts"
import { outcomes } from "../../rollout/episode.ts"
import type { Group } from "../../rollout/hooks.ts"
import type { CollectedStep } from "../../training/steps.ts"
import { Pace } from "../../util/pace.ts"
import { questionFirst } from "../data/task-label.ts"
import { BlockEncoder } from "./encode.ts"
import type { PlainBlock, RecordedIteration } from "./file.ts"
import type { Recordable } from "./part.ts"
import { StepGroups } from "./step-groups.ts"

/** Minimum size of a block in bytes, which determines the memory, and the work to read one group. */
const blockBytes = 512 * 1024
/** Minimum number of tokens of a part, which is encoded without a pause. */
const partTokens = 8192
/** Maximum length of a task's label in characters of its JSON. */
const longestLabel = 200

/** Data of an iteration to record. */
export interface ToRecord {
  readonly iteration: number
  readonly groups: readonly Group[]
  readonly credit: Credit
  /** Steps in the order of the credit. */
  readonly steps: readonly Pick<CollectedStep, "task" | "episode" | "trainerLogProbs">[]
  /** Maximum number of groups. */
  readonly most: number
}

export function summarize({ iteration, groups, most }: ToRecord): Omit<RecordedIteration, "checksum"> {
  const places = new Map<string, number>()
  const all = groups.slice(0, most).flatMap(({ task, index: group, episodes }) => {
    const label = labelOf(task)
    const place = places.get(label) ?? places.size
    places.set(label, place)
    return episodes.map((episode, member) => ({ group, task: place, member, episode }))
  })
  return {
    iteration,
    group: all.map(({ group }) => group),
    member: all.map(({ member }) => member),
    task: all.map(({ task }) => task),
    outcome: all.map(({ episode }) => outcomes.indexOf(episode.outcome)),
    success: all.map(({ episode: { metrics } }) => metrics.success ?? null),
    return: all.map(({ episode }) => episode.return),
    steps: all.map(({ episode }) => episode.steps.length),
    tokens: all.map(({ episode: { steps } }) => steps.reduce((sum, { completion }) => sum + completion.length, 0)),
    tasks: [...places.keys()],
    problems: {
      invalid: all.map(({ episode: { steps } }) => steps.filter(({ valid }) => !valid).length),
      truncated: all.map(
        ({ episode: { steps } }) => steps.filter(({ finishReason }) => finishReason === "length").length,
      ),
      revisits: all.map(
        ({ episode: { steps } }) => steps.length - new Set(steps.map(({ observation }) => observation.anchor)).size,
      ),
      rejected: all.map(({ episode: { metrics } }) =>
        Math.max(0, Math.trunc(metrics["rejected-calls"] ?? metrics["rejected-actions"] ?? 0)),
      ),
    },
  }
}

/** Blocks of a file, made lazily without blocking the event loop. */
export async function* blocksOf(
  toRecord: ToRecord,
  bytesOf: (token: number) => Uint8Array,
): AsyncGenerator<PlainBlock, void, undefined> {
  const pace = new Pace()
  let block = new BlockEncoder(bytesOf, pace)
  let [parts, groups, bytes]: [Buffer[], Set<number>, number] = [[], new Set(), 0]
  for (const together of partsOf(recordables(toRecord))) {
    const part = await block.part(together)
    parts.push(part)
    groups.add(together[0]!.group)
    bytes += part.length
    if (bytes >= blockBytes) {
      yield { parts, groups: [...groups] }
      block = new BlockEncoder(bytesOf, pace)
      ;[parts, groups, bytes] = [[], new Set(), 0]
    }
    if (pace.due()) await pace.rest()
  }
  if (parts.length > 0) yield { parts, groups: [...groups] }
}

/** Combines short episodes of a group into parts. */
function* partsOf(all: Iterable<Recordable>): Generator<readonly Recordable[], void, undefined> {
  let [part, tokens]: [Recordable[], number] = [[], 0]
  for (const recordable of all) {
    if (part.length > 0 && (part[0]!.group !== recordable.group || tokens >= partTokens)) {
      yield part
      ;[part, tokens] = [[], 0]
    }
    part.push(recordable)
    for (const { prompt, completion } of recordable.episode.steps) tokens += prompt.length + completion.length
  }
  if (part.length > 0) yield part
}

function* recordables({ groups, credit, steps, most }: ToRecord): Generator<Recordable, void, undefined> {
  const firsts = firstSteps(groups, steps)
  const stepGroups = new StepGroups(credit)
  for (const [at, { task, index, episodes }] of groups.slice(0, most).entries()) {
    const json = jsonOf(task)
    const ofTask = stepGroups.ofTask(episodes, firsts[at]!)
    for (const [member, episode] of episodes.entries()) {
      const first = firsts[at]![member]
      const earned = first === undefined ? undefined : { of: credit, first, steps }
      yield { group: index, member, task: json, episode, stepGroups: ofTask[member]!, credit: earned }
    }
  }
}

/** First index in the credit of each episode, [groups][episodes]; undefined for episodes without credit. */
function firstSteps(groups: readonly Group[], steps: ToRecord["steps"]): (number | undefined)[][] {
  const firsts = groups.map(({ episodes }) => new Array<number | undefined>(episodes.length))
  for (const [index, { task, episode }] of steps.entries()) firsts[task]![episode] ??= index
  return firsts
}

function labelOf(task: unknown): string {
  const json = jsonOf(task, questionFirst)
  return json.length > longestLabel ? `${json.slice(0, longestLabel - 1)}…` : json
}

/** JSON of a task; null if it has no JSON form. */
function jsonOf(given: unknown, shape = (task: unknown) => task): string {
  try {
    const task = shape(given)
    const foreign = typeof task === "object" && task !== null ? textOf(task) : undefined
    return foreign ?? JSON.stringify(task, (_, value) => (typeof value === "bigint" ? undefined : value)) ?? "null"
  } catch {
    return "null" // circular
  }
}
