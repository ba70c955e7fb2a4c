import type { Credit } from "../credit/estimator.ts"
import type { Sequence } from "../engine/sequence.ts"
import { atOnce, type Pieces } from "../util/pace.ts"
import type { Random } from "../util/random.ts"
import { SequenceTable } from "./sequence-table.ts"
import type { CollectedStep } from "./steps.ts"

/**
 * Returns the training sequences of steps, without advantages, in the order of their first steps. A step whose prompt extends the previous
 * step of the same conversation, token for token, joins the sequence of that step. Any other step starts a sequence. `Segment.step` is the index
 * of a segment's step.
 */
export function layOutSequences(steps: readonly CollectedStep[]): Sequence[] {
  return SequenceTable.of(steps).toSequences()
}

/** Returns the training sequences of steps, with advantages. Skipped steps remain as context. Sequences without a segment are left out. */
export function toSequences(steps: readonly CollectedStep[], credit: Credit | Credit["advantages"]): Sequence[] {
  return SequenceTable.of(steps)
    .withCredit("advantages" in credit ? credit : { advantages: credit })
    .toSequences()
}

/**
 * Groups sequences by task. Sequences of a task often share prompts, which are then computed once. A sequence without a task forms a group of
 * its own.
 */
export function groupByTask(sequences: readonly Sequence[]): Sequence[][] {
  return gather(sequences, taskOf)
}

export const taskOf = ({ segments }: Sequence): number | undefined => segments[0]!.task
export const episodeOf = ({ segments }: Sequence): number | undefined => segments[0]!.episode

/** Groups items by key, in order of first occurrence. An item without a key forms a separate group. */
export function gather<Item>(items: readonly Item[], keyOf: (item: Item) => number | string | undefined): Item[][] {
  return atOnce(gatherInPieces(items, keyOf))
}

/** `gather` for long lists, which pauses between items. */
export function* gatherInPieces<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => number | string | undefined,
): Pieces<Item[][]> {
  const open = new Map<number | string, Item[]>()
  const groups: Item[][] = []
  for (const item of items) {
    yield
    const key = keyOf(item)
    const group = key === undefined ? undefined : open.get(key)
    if (group) {
      group.push(item)
      continue
    }
    const fresh = [item]
    groups.push(fresh)
    if (key !== undefined) open.set(key, fresh)
  }
  return groups
}

/**
 * Divides items (sequences, or the sequences of an episode) into batches of nearly equal size, with the groups in random order. Items of a
 * group are adjacent. A group may be split between two batches; an item is never split.
 *
 * @param size - approximate maximum size of a batch, or the number of batches as `parts` (fewer if there are fewer items).
 * @param count - size of an item. Default: the number of segments of a sequence, which are its steps.
 */
export function miniBatches<Item>(
  groups: readonly (readonly Item[])[],
  size: number | { readonly parts: number },
  random: Random,
  count?: (item: Item) => number,
): Item[][] {
  return atOnce(batchesInPieces(groups, size, random, count))
}

/** `miniBatches` for long lists, which pauses between items. */
export function* batchesInPieces<Item>(
  groups: readonly (readonly Item[])[],
  size: number | { readonly parts: number },
  random: Random,
  count: (item: Item) => number = countSegments as (item: Item) => number,
): Pieces<Item[][]> {
  const items = random.shuffled(groups).flat()
  const starts: number[] = []
  let total = 0
  for (const item of items) {
    yield
    starts.push(total)
    total += count(item)
  }
  const parts = typeof size === "object" ? size.parts : Math.max(Math.ceil(total / size), 1)
  const made: Item[][] = []
  let from = 0
  for (let part = 1; part <= parts; part++) {
    yield
    const end = Math.round((part * total) / parts)
    let to = from
    while (to < items.length && starts[to]! < end) to++
    if (to > from) made.push(items.slice(from, to))
    from = to
  }
  return made
}

function countSegments({ segments }: { readonly segments: readonly unknown[] }): number {
  return segments.length
}
