import type { Credit } from "../credit/estimator.ts"
import type { Sequence } from "../engine/rows.ts"
import type { Random } from "../util/random.ts"
import { SequenceTable } from "./sequence-table.ts"
import type { CollectedStep } from "./steps.ts"

/**
 * Training rows of the steps without advantages, in the order of their first steps. A step whose prompt extends the step before it in the
 * same conversation, token for token, joins that step's row; every other step is a row of one span. `Span.step` is the step of a span.
 */
export function layOutSequences(steps: readonly CollectedStep[]): Sequence[] {
  return SequenceTable.of(steps).toSequences()
}

/** Training rows of the steps with their advantages; steps that an estimator skips are context, and rows without a span are left out. */
export function toSequences(steps: readonly CollectedStep[], credit: Credit | Credit["advantages"]): Sequence[] {
  return SequenceTable.of(steps)
    .withCredit("advantages" in credit ? credit : { advantages: credit })
    .toSequences()
}

/** Rows that belong together: those of one task, whose steps often share their prompts, which are then computed once. A row without one is alone. */
export function byTask(rows: readonly Sequence[]): Sequence[][] {
  return gather(rows, ({ spans }) => spans[0]!.task)
}

/** Rows of equal keys together, in the order of the first of each; one without a key is alone. */
export function gather(rows: readonly Sequence[], keyOf: (row: Sequence) => number | string | undefined): Sequence[][] {
  const open = new Map<number | string, Sequence[]>()
  const groups: Sequence[][] = []
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
export function byEpisode(rows: readonly Sequence[]): Sequence[][] {
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
