import { malformed } from "./bits.ts"

/** Table of a finite state entropy code (RFC 8878, section 4.1), by state. */
export interface FseTable {
  /** Number of bits of a state. */
  readonly log: number
  readonly symbols: Uint8Array
  /** Number of bits to read for the next state, per state. */
  readonly widths: Uint8Array
  /** Base of the next state, per state. */
  readonly bases: Uint16Array
}

/** Returns the table of a single symbol. */
export function singleTable(symbol: number, mostSymbols: number): FseTable {
  if (symbol >= mostSymbols) throw malformed()
  return { log: 0, symbols: Uint8Array.of(symbol), widths: new Uint8Array(1), bases: new Uint16Array(1) }
}

/**
 * Builds a table.
 *
 * @param counts - number of states of each symbol among 2^log; -1 means a probability below one state.
 */
export function buildTable(counts: readonly number[], log: number): FseTable {
  const size = 1 << log
  const [symbols, widths, bases] = [new Uint8Array(size), new Uint8Array(size), new Uint16Array(size)]
  const next = counts.map((count) => Math.abs(count))
  let high = size - 1
  for (const [symbol, count] of counts.entries()) if (count === -1) symbols[high--] = symbol
  let place = 0
  for (const [symbol, count] of counts.entries())
    for (let i = 0; i < count; i++) {
      symbols[place] = symbol
      do place = (place + (size >> 1) + (size >> 3) + 3) & (size - 1)
      while (place > high)
    }
  if (place !== 0) throw malformed()
  for (let state = 0; state < size; state++) {
    const among = next[symbols[state]!]!++
    widths[state] = log - (31 - Math.clz32(among))
    bases[state] = (among << widths[state]!) - size
  }
  return { log, symbols, widths, bases }
}

/** Reads the description of a table. Returns the table and the bytes of the description. */
export function readTable(
  bytes: Uint8Array,
  mostLog: number,
  mostSymbols: number,
): { readonly table: FseTable; readonly length: number } {
  let at = 0
  const take = (count: number) => {
    const place = at >> 3
    const three = bytes[place]! | (bytes[place + 1]! << 8) | (bytes[place + 2]! << 16)
    at += count
    return (three >>> ((at - count) & 7)) & ((1 << count) - 1)
  }
  const log = 5 + take(4)
  if (log > mostLog) throw malformed()
  const counts: number[] = []
  for (let remaining = (1 << log) + 1; remaining > 1; ) {
    if (counts.length >= mostSymbols) throw malformed()
    // Values below `short` have one bit fewer.
    const threshold = 1 << (31 - Math.clz32(remaining))
    const short = 2 * threshold - 1 - remaining
    let value = take(31 - Math.clz32(threshold))
    if (value >= short) {
      value += take(1) * threshold
      if (value >= threshold) value -= short
    }
    const count = value - 1
    counts.push(count)
    remaining -= Math.abs(count)
    if (remaining < 1) throw malformed()
    if (count !== 0) continue
    for (let zeros = 3; zeros === 3; ) {
      zeros = take(2)
      for (let i = 0; i < zeros; i++) counts.push(0)
      if (counts.length > mostSymbols) throw malformed()
    }
  }
  const length = (at + 7) >> 3
  if (length > bytes.length) throw malformed()
  return { table: buildTable(counts, log), length }
}
