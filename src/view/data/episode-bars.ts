import type { Range } from "./episode-filter.ts"
import type { EpisodeTable } from "./episode-table.ts"

// Charts above the list of episodes: the distribution of returns, and the success rate by iteration.

/** Histogram with the same bins for every selection. */
export interface Bars {
  /** [bars + 1] Bounds of the bins. */
  readonly edges: Float64Array
  /** [bars] From 0 to 1. */
  heights(selected: Uint32Array): Float64Array
}

/** Histogram of returns; `most` is the number of episodes at full height. */
export function returnBars(table: EpisodeTable, bars = 32): Bars & { readonly most: number } {
  const [least, most] = extent(table.return)
  const width = (most - least || 1) / bars
  // [episodes] Bin of each episode; the number of bins for returns that are not a number.
  const bar = Uint8Array.from(table.return, (earned) =>
    Number.isFinite(earned) ? Math.min(Math.floor((earned - least) / width), bars - 1) : bars,
  )
  const counts = (places: Uint32Array | undefined) => {
    const found = new Float64Array(bars + 1)
    if (places) for (let at = 0; at < places.length; at++) found[bar[places[at]!]!]!++
    else for (let at = 0; at < bar.length; at++) found[bar[at]!]!++
    return found.subarray(0, bars)
  }
  const highest = counts(undefined).reduce((one, other) => Math.max(one, other), 0)
  return {
    edges: Float64Array.from({ length: bars + 1 }, (_, at) => least + at * width),
    most: highest,
    // Square root scale, so that small bars are visible next to large ones.
    heights: (selected) => counts(selected).map((count) => Math.sqrt(count / (highest || 1))),
  }
}

/** Success rate of the selected episodes by iteration, of those that report success; 0 if none does. */
export function successBars(table: EpisodeTable): Bars {
  const [first, last] = table.length > 0 ? extent(table.iteration) : [0, -1]
  const bars = last - first + 1
  return {
    edges: Float64Array.from({ length: bars + 1 }, (_, at) => first + at),
    heights(selected) {
      const [known, succeeded] = [new Float64Array(bars), new Float64Array(bars)]
      for (let at = 0; at < selected.length; at++) {
        const place = selected[at]!
        const result = table.result[place]!
        if (result === 2) continue
        known[table.iteration[place]! - first]!++
        succeeded[table.iteration[place]! - first]! += result
      }
      return succeeded.map((count, at) => count / (known[at] || 1))
    },
  }
}

function extent(values: Int32Array | Float64Array): Range {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (let at = 0; at < values.length; at++) {
    const value = values[at]!
    if (!Number.isFinite(value)) continue
    if (value < least) least = value
    if (value > most) most = value
  }
  return least <= most ? [least, most] : [0, 0]
}
