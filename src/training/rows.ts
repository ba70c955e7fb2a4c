import type { BatchStep } from "../credit/batch.ts"
import type { Credit, StepRecord } from "../credit/estimator.ts"
import type { TopTokens } from "../engine/engine.ts"
import { type Row, type Span, sampledWeights } from "../engine/rows.ts"
import { atOnce, type Pieces } from "../pace.ts"
import type { Random } from "../random.ts"
import { type Episode, type EpisodeStep, isScored } from "../rollout/episode.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { tokenTexts } from "../tokenizer/token-texts.ts"

/** One step of a finished episode, with what estimators ask of it. */
export interface CollectedStep extends BatchStep {
  readonly record: EpisodeStep & StepRecord
}

/**
 * The steps of all episodes but those that failed or were dropped, in the order of tasks, members and time.
 *
 * @param least scored episodes without which a group is left out (`rollout.leastGroupSize`)
 */
export function collectSteps(groups: readonly (readonly Episode[])[], least = 1): CollectedStep[] {
  return atOnce(collectingSteps(groups, least))
}

/** The same in pieces. */
export function* collectingSteps(groups: readonly (readonly Episode[])[], least = 1): Pieces<CollectedStep[]> {
  const collected: CollectedStep[] = []
  for (const { task, member, episode } of learnedEpisodes(groups, least)) {
    yield
    const { steps, outcome } = episode
    const next = nextAnchors(episode)
    for (const [index, record] of steps.entries()) {
      const { observation, reward, valid, conversation, agent } = record
      const ended = index + 1 === steps.length
      const nextAnchor = next[index]
      collected.push({
        task,
        episode: member,
        anchor: observation.anchor,
        reward,
        valid,
        length: record.reply.length,
        ...(nextAnchor !== undefined && { nextAnchor }),
        ...(ended && outcome === "terminated" && { terminated: true }),
        ...(ended && outcome !== "terminated" && { truncated: true }),
        ...(conversation !== undefined && { conversation }),
        ...(agent !== undefined && { agent }),
        record,
      })
    }
  }
  return collected
}

/** The same steps, with what each token adds to its reply's text. */
export function withTexts(steps: readonly CollectedStep[], tokenizer: ChatCodec): readonly CollectedStep[] {
  return steps.map((step) => ({ ...step, tokenTexts: tokenTexts(tokenizer, step.record.reply) }))
}

/** The episodes whose steps are learned from, in the order in which these are collected. */
export function* learnedEpisodes(
  groups: readonly (readonly Episode[])[],
  least: number,
): Generator<{ readonly task: number; readonly member: number; readonly episode: Episode }, void, undefined> {
  for (const [task, group] of groups.entries()) {
    if (isTooSmall(group, least)) continue
    for (const [member, episode] of group.entries()) if (isScored(episode)) yield { task, member, episode }
  }
}

export function isTooSmall(group: readonly Episode[], least: number): boolean {
  return group.filter(isScored).length < least
}

/** What each step led to: what the same agent saw next in the same conversation; of the episode's last step, what was seen last. */
function nextAnchors({ steps, last }: Episode): (string | undefined)[] {
  const seen = new Map<unknown, Map<unknown, string | undefined>>()
  const next = new Array<string | undefined>(steps.length)
  for (let index = steps.length - 1; index >= 0; index--) {
    const { conversation, agent, observation } = steps[index]!
    const agents = seen.get(conversation) ?? new Map<unknown, string>()
    seen.set(conversation, agents)
    next[index] = agents.has(agent) ? agents.get(agent) : index + 1 === steps.length ? last?.anchor : undefined
    agents.set(agent, observation.anchor)
  }
  return next
}

/** A row that is still being filled in. */
export interface LaidRow extends Row {
  tokens: Int32Array
  spans: LaidSpan[]
}
type Writable<T> = { -readonly [Key in keyof T]: T[Key] }
export interface LaidSpan extends Writable<Span> {
  readonly step: number
}

/**
 * Training rows without credit, in the order of their first steps. A step whose prompt goes on exactly, token for token, from the
 * step before it in the same conversation joins that step's row; every other step is a row of one span. `Span.step` says which
 * step a span is.
 */
export function layRows(steps: readonly CollectedStep[]): LaidRow[] {
  return atOnce(layingRows(steps))
}

/** The same in pieces. */
export function* layingRows(steps: readonly CollectedStep[]): Pieces<LaidRow[]> {
  const rows = yield* chain(steps)
  let total = 0
  for (const row of rows) total += length(row.at(-1)!.record)
  yield
  const all = new Int32Array(total) // one piece of memory for all rows: thousands of small ones take milliseconds
  let end = 0
  const laid: LaidRow[] = []
  for (const row of rows) {
    yield
    const start = end
    const spans: LaidSpan[] = []
    for (const { record, index, task, episode } of row) {
      const { prompt, reply, logProbs, forced, temperature, constraint } = record
      all.set(end === start ? prompt : prompt.subarray(end - start), end)
      all.set(reply, start + prompt.length)
      end = start + prompt.length + reply.length
      const span: LaidSpan = {
        start: prompt.length,
        length: reply.length,
        step: index,
        task,
        episode,
        logProbs,
        advantage: 0,
      }
      if (forced) span.weights = sampledWeights(forced)
      if (temperature !== undefined) span.temperature = temperature
      if (constraint !== undefined) span.constraint = constraint
      if (record.offPolicy) span.offPolicy = true
      spans.push(span)
    }
    const tokens = all.subarray(start, end)
    const { attachments } = row[0]!.record
    laid.push(attachments ? { tokens, spans, attachments } : { tokens, spans })
  }
  return laid
}

interface Link {
  readonly record: EpisodeStep
  readonly index: number
  readonly task: number
  readonly episode: number
}

/** The steps of each row. */
function* chain(steps: readonly CollectedStep[]): Pieces<Link[][]> {
  const rows: Link[][] = []
  let open = new Map<unknown, Link[]>() // by conversation, of the episode at hand
  let [task, episode]: [unknown, unknown] = [undefined, undefined]
  let [tasks, episodes] = [-1, -1]
  for (const [index, step] of steps.entries()) {
    if (step.task !== task || step.episode !== episode) {
      yield
      if (step.task !== task) tasks++
      episodes++
      open = new Map()
      task = step.task
      episode = step.episode
    }
    const link = { record: step.record, index, task: tasks, episode: episodes }
    const row = open.get(step.conversation)
    if (row && goesOn(step.record, row.at(-1)!.record)) {
      row.push(link)
      continue
    }
    const fresh = [link]
    open.set(step.conversation, fresh)
    rows.push(fresh)
  }
  return rows
}

function goesOn({ prompt, attachments }: EpisodeStep, before: EpisodeStep): boolean {
  const at = before.prompt.length
  if (prompt.length < length(before) || attachments !== undefined || before.attachments !== undefined) return false
  for (let i = 0; i < at; i++) if (prompt[i] !== before.prompt[i]) return false
  for (let i = 0; i < before.reply.length; i++) if (prompt[at + i] !== before.reply[i]) return false
  return true
}

function length({ prompt, reply }: EpisodeStep): number {
  return prompt.length + reply.length
}

/**
 * Gives laid rows their credit, in place: one advantage a step, or all that an estimator says. A step that is left out (`skip`) is
 * no span any more; its tokens stay where later steps need them to be read. Rows without a span are left out.
 */
export function giveCredit(rows: readonly LaidRow[], credit: Credit): LaidRow[] {
  return atOnce(givingCredit(rows, credit))
}

/** The same in pieces. */
export function* givingCredit(rows: readonly LaidRow[], credit: Credit): Pieces<LaidRow[]> {
  const { advantages, skip, weights, returns, clipScale } = credit
  const kept: LaidRow[] = []
  for (const row of rows) {
    yield
    if (skip) leaveOut(row, skip)
    for (const span of row.spans) {
      span.advantage = advantages[span.step]!
      const [before, given] = [span.weights, weights?.[span.step]]
      if (given) span.weights = before ? given.map((weight, t) => weight * before[t]!) : given
      if (returns) span.returns = returns[span.step]!
      if (clipScale) span.clipScale = clipScale[span.step]!
    }
    if (row.spans.length > 0) kept.push(row)
  }
  return kept
}

function leaveOut(row: LaidRow, skip: Uint8Array): void {
  row.spans = row.spans.filter(({ step }) => skip[step] !== 1)
  const last = row.spans.at(-1)
  row.tokens = row.tokens.subarray(0, last ? last.start + last.length : 0)
}

/** Training rows of the steps, with their credit. */
export function toRows(steps: readonly CollectedStep[], credit: Credit | Credit["advantages"]): Row[] {
  return giveCredit(layRows(steps), "advantages" in credit ? credit : { advantages: credit })
}

/** Puts what an engine said of laid rows, [rows][tokens], into their spans, under this name. */
export function addColumn(
  rows: readonly LaidRow[],
  name: "oldLogProbs" | "referenceLogProbs" | "teacherLogProbs" | "values",
  found: (row: number) => Float32Array,
): void {
  for (const [index, { spans }] of rows.entries()) {
    const values = found(index)
    let at = 0
    for (const span of spans) {
      span[name] = values.subarray(at, at + span.length)
      at += span.length
    }
  }
}

/** Puts a teacher's likeliest tokens, [rows][tokens × count], into the rows' spans. */
export function addTeacherTop(rows: readonly LaidRow[], found: (row: number) => TopTokens | undefined): void {
  for (const [index, { spans }] of rows.entries()) {
    const top = found(index)
    let at = 0
    for (const span of spans) {
      const end = at + span.length * (top?.count ?? 0)
      if (top)
        span.teacherTop = { ...top, tokens: top.tokens.subarray(at, end), logProbs: top.logProbs.subarray(at, end) }
      at = end
    }
  }
}

/** One array a step, of what an engine said of the rows' tokens. */
export function byStep(
  rows: readonly LaidRow[],
  steps: number,
  values: (row: number) => Float32Array | undefined,
): Float32Array[] {
  const found = new Array<Float32Array>(steps)
  for (const [index, { spans }] of rows.entries()) {
    let at = 0
    for (const { step, length } of spans) {
      found[step] = values(index)!.subarray(at, at + length)
      at += length
    }
  }
  return found
}

/** Rows that belong together: those of one task, whose steps often share their prompts, which are then computed once. A row without one is alone. */
export function byTask(rows: readonly Row[]): Row[][] {
  return gather(rows, ({ spans }) => spans[0]!.task)
}

/** Rows of equal keys together, in the order of the first of each; one without a key is alone. */
export function gather(rows: readonly Row[], keyOf: (row: Row) => number | string | undefined): Row[][] {
  const open = new Map<number | string, Row[]>()
  const groups: Row[][] = []
  for (const row of rows) {
    const key = keyOf(row)
    const group = key === undefined ? undefined : open.get(key)
    if (group) {
      group.push(row)
      continue
    }
    const fresh = [row]
    groups.push(fresh)
    if (key !== undefined) open.set(key, fresh)
  }
  return groups
}

/** The rows of each episode, in the order of their first rows. A row that does not say its episode is alone. */
export function byEpisode(rows: readonly Row[]): Row[][] {
  return gather(rows, ({ spans }) => spans[0]!.episode)
}

/**
 * All items (rows, or the rows of an episode) once, with the groups in a random order, in batches of nearly equal number. The items
 * of a group stand side by side; a long group may be cut between two batches, an item never is.
 *
 * @param size at most about so much in a batch, or so many batches (fewer where there are fewer items)
 * @param count what an item counts for. Default: the spans of a row, which are its steps.
 */
export function batches<Item>(
  groups: readonly (readonly Item[])[],
  size: number | { readonly parts: number },
  random: Random,
  count: (item: Item) => number = countSpans as (item: Item) => number,
): Item[][] {
  const items = random.shuffled(groups).flat()
  const starts: number[] = []
  let total = 0
  for (const item of items) {
    starts.push(total)
    total += count(item)
  }
  const parts = typeof size === "object" ? size.parts : Math.max(Math.ceil(total / size), 1)
  const made: Item[][] = []
  let from = 0
  for (let part = 1; part <= parts; part++) {
    const end = Math.round((part * total) / parts)
    let to = from
    while (to < items.length && starts[to]! < end) to++
    if (to > from) made.push(items.slice(from, to))
    from = to
  }
  return made
}

function countSpans({ spans }: { readonly spans: readonly unknown[] }): number {
  return spans.length
}
