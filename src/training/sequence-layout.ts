import type { EpisodeStep } from "../rollout/episode.ts"
import { itemsOfPiece, mapInPieces, type Pieces } from "../util/pace.ts"
import type { CollectedStep } from "./steps.ts"

/** Sequences of an iteration as columns: tokens and segments. */
export interface SequenceLayout {
  /** Tokens of all sequences, sampled or not. */
  readonly tokens: Int32Array
  /** Sequence r holds tokens begins[r] … ends[r] - 1, [sequences]. */
  readonly begins: Int32Array
  readonly ends: Int32Array
  /** Sequence r holds segments segmentOffsets[r] … segmentOffsets[r + 1] - 1, [sequences + 1]. */
  readonly segmentOffsets: Int32Array
  /** First token of each segment in its sequence, [segments]. */
  readonly starts: Int32Array
  /** Segment s holds sampled tokens offsets[s] … offsets[s + 1] - 1, [segments + 1]. */
  readonly offsets: Int32Array
  /** Step of each segment, and dense ids of its episode and task, [segments]. */
  readonly steps: Int32Array
  readonly episodes: Int32Array
  readonly tasks: Int32Array
}

/**
 * Lays out the sequences of steps in pieces, without copying tokens. A step joins the sequence of the same conversation that its prompt extends, token
 * for token.
 */
export function* layOut(steps: readonly CollectedStep[]): Pieces<SequenceLayout> {
  const { sequences, episodes, tasks } = yield* chain(steps)
  const order = sequences.flat()
  const of = function* (value: (step: number) => number): Pieces<Int32Array> {
    return Int32Array.from(yield* mapInPieces(order, value))
  }
  const begins = new Int32Array(sequences.length)
  const ends = new Int32Array(sequences.length)
  const segmentOffsets = new Int32Array(sequences.length + 1)
  for (const [r, own] of sequences.entries()) {
    if (r % itemsOfPiece === 0) yield
    begins[r] = r === 0 ? 0 : ends[r - 1]!
    ends[r] = begins[r]! + lengthOf(steps[own.at(-1)!]!.record)
    segmentOffsets[r + 1] = segmentOffsets[r]! + own.length
  }
  const offsets = new Int32Array(order.length + 1)
  for (const [s, step] of order.entries()) {
    if (s % itemsOfPiece === 0) yield
    offsets[s + 1] = offsets[s]! + steps[step]!.record.completion.length
  }
  return {
    tokens: new Int32Array(ends.at(-1) ?? 0), // one array: thousands of small ones take milliseconds
    ...{ begins, ends, segmentOffsets, offsets },
    starts: yield* of((step) => steps[step]!.record.prompt.length),
    steps: Int32Array.from(order),
    episodes: yield* of((step) => episodes[step]!),
    tasks: yield* of((step) => tasks[step]!),
  }
}

/**
 * Returns a layout with fewer segments. The tokens of removed segments remain as context of later ones. Sequences without a segment are left
 * out.
 *
 * @param kept - indices of the remaining segments, ascending.
 */
export function keepSegments(layout: SequenceLayout, kept: Int32Array): SequenceLayout {
  const { tokens, starts, offsets } = layout
  const [begins, ends, segmentOffsets, ownOffsets] = [[], [], [0], [0]] as number[][]
  let next = 0
  for (const [r, begin] of layout.begins.entries()) {
    const first = next
    while (next < kept.length && kept[next]! < layout.segmentOffsets[r + 1]!) {
      const s = kept[next++]!
      ownOffsets!.push(ownOffsets!.at(-1)! + offsets[s + 1]! - offsets[s]!)
    }
    if (next === first) continue
    const last = kept[next - 1]!
    begins!.push(begin)
    ends!.push(begin + starts[last]! + offsets[last + 1]! - offsets[last]!)
    segmentOffsets!.push(next)
  }
  const of = (column: Int32Array) => kept.map((s) => column[s]!)
  return {
    ...{ tokens, begins: Int32Array.from(begins!), ends: Int32Array.from(ends!) },
    ...{ segmentOffsets: Int32Array.from(segmentOffsets!), offsets: Int32Array.from(ownOffsets!) },
    ...{ starts: of(starts), steps: of(layout.steps), episodes: of(layout.episodes), tasks: of(layout.tasks) },
  }
}

/** Steps of each sequence, and dense ids of the episode and task of each step in order of occurrence. */
function* chain(steps: readonly CollectedStep[]) {
  const sequences: number[][] = []
  const [episodes, tasks] = [new Int32Array(steps.length), new Int32Array(steps.length)]
  let open = new Map<unknown, number[]>() // last sequence by conversation, in the current episode
  let [task, episode] = [-1, -1]
  for (const [index, step] of steps.entries()) {
    if (index % itemsOfPiece === 0) yield
    const before = steps[index - 1]
    if (step.task !== before?.task || step.episode !== before?.episode) {
      if (step.task !== before?.task) task++
      episode++
      open = new Map()
    }
    episodes[index] = episode
    tasks[index] = task
    const sequence = open.get(step.conversation)
    if (sequence && extendsStep(step.record, steps[sequence.at(-1)!]!.record)) {
      sequence.push(index)
      continue
    }
    const fresh = [index]
    open.set(step.conversation, fresh)
    sequences.push(fresh)
  }
  return { sequences, episodes, tasks }
}

function extendsStep({ prompt, attachments }: EpisodeStep, before: EpisodeStep): boolean {
  const at = before.prompt.length
  if (prompt.length < lengthOf(before) || attachments !== undefined || before.attachments !== undefined) return false
  for (let i = 0; i < at; i++) if (prompt[i] !== before.prompt[i]) return false
  for (let i = 0; i < before.completion.length; i++) if (prompt[at + i] !== before.completion[i]) return false
  return true
}

/** Copies the tokens of one sequence into the layout. */
export function copyTokens(layout: SequenceLayout, steps: readonly CollectedStep[], r: number): void {
  const { tokens, segmentOffsets } = layout
  const begin = layout.begins[r]!
  let end = begin
  for (let s = segmentOffsets[r]!; s < segmentOffsets[r + 1]!; s++) {
    const { prompt, completion } = steps[layout.steps[s]!]!.record
    tokens.set(end === begin ? prompt : prompt.subarray(end - begin), end)
    tokens.set(completion, begin + prompt.length)
    end = begin + prompt.length + completion.length
  }
}

function lengthOf({ prompt, completion }: EpisodeStep): number {
  return prompt.length + completion.length
}
