import { BackwardBits, malformed } from "./bits.ts"
import { buildTable, type FseTable, readTable, singleTable } from "./fse.ts"

// Sequences (RFC 8878, section 3.1.1.3.2): a number of literals, then a copy of bytes from `offset` bytes before.

/** Returns the number of extra bits of each code, and the base that they are added to. */
function ranges(first: number, widths: readonly number[]): { readonly base: number; readonly bits: number }[] {
  let base = first
  return widths.map((bits) => {
    const range = { base, bits }
    base += 2 ** bits
    return range
  })
}

const zeros = (count: number) => Array<number>(count).fill(0)
const lengths = [1, 1, 1, 1, 2, 2, 3, 3]
const literalLengths = ranges(0, [...zeros(16), ...lengths, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
const matchLengths = ranges(3, [...zeros(32), ...lengths, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])

interface Code {
  readonly mostLog: number
  readonly mostSymbols: number
  readonly predefined: FseTable
}
const repeat = (count: number, value: number) => Array<number>(count).fill(value)

/** Codes in the order of their tables in a block: literal lengths, offsets, match lengths. */
const codes: readonly Code[] = [
  {
    ...{ mostLog: 9, mostSymbols: literalLengths.length },
    predefined: buildTable(
      [4, 3, ...repeat(11, 2), ...repeat(3, 1), ...repeat(9, 2), 3, 2, ...repeat(5, 1), ...repeat(4, -1)],
      6,
    ),
  },
  {
    ...{ mostLog: 8, mostSymbols: 32 },
    predefined: buildTable([...repeat(6, 1), ...repeat(3, 2), ...repeat(15, 1), ...repeat(5, -1)], 5),
  },
  {
    ...{ mostLog: 9, mostSymbols: matchLengths.length },
    predefined: buildTable([1, 4, 3, ...repeat(6, 2), ...repeat(37, 1), ...repeat(7, -1)], 6),
  },
]

/** State that a block passes on to the next one of its frame. */
export interface Remembered {
  readonly tables: (FseTable | undefined)[]
  readonly offsets: [number, number, number]
}

/** Returns the state at the start of a frame. */
export const remembersNothing = (): Remembered => ({
  tables: [undefined, undefined, undefined],
  offsets: [1, 4, 8],
})

/** Calls `copy` for each sequence of a section. Throws `BAD_ARGUMENT`. */
export function eachSequence(
  section: Uint8Array,
  remembered: Remembered,
  copy: (literals: number, match: number, offset: number) => void,
): void {
  let at = 0
  const byte = () => {
    if (at >= section.length) throw malformed()
    return section[at++]!
  }
  const first = byte()
  const count = first < 128 ? first : first < 255 ? (first - 128) * 256 + byte() : byte() + 256 * byte() + 0x7f00
  if (count === 0) {
    if (at !== section.length) throw malformed()
    return
  }
  const modes = byte()
  if ((modes & 3) !== 0) throw malformed()
  const { tables, offsets } = remembered
  for (const [i, { mostLog, mostSymbols, predefined }] of codes.entries()) {
    const mode = (modes >> (6 - 2 * i)) & 3
    if (mode === 0) tables[i] = predefined
    else if (mode === 1) tables[i] = singleTable(byte(), mostSymbols)
    else if (mode === 2) {
      const { table, length } = readTable(section.subarray(at), mostLog, mostSymbols)
      tables[i] = table
      at += length
    }
  }
  const [literal, offset, match] = tables
  if (!literal || !offset || !match) throw malformed()
  const bits = new BackwardBits(section.subarray(at))
  let [l, o, m] = [bits.take(literal.log), bits.take(offset.log), bits.take(match.log)]
  for (let rest = count; ; ) {
    const code = offset.symbols[o]!
    const value = 2 ** code + bits.take(code)
    const long = matchLengths[match.symbols[m]!]!
    const matched = long.base + bits.take(long.bits)
    const short = literalLengths[literal.symbols[l]!]!
    const literals = short.base + bits.take(short.bits)
    copy(literals, matched, offsetOf(value, literals, offsets))
    if (--rest === 0) break
    l = literal.bases[l]! + bits.take(literal.widths[l]!)
    m = match.bases[m]! + bits.take(match.widths[m]!)
    o = offset.bases[o]! + bits.take(offset.widths[o]!)
  }
  if (bits.left !== 0) throw malformed()
}

/** Returns the offset of a value. Values up to 3 refer to recent offsets. */
function offsetOf(value: number, literals: number, recent: [number, number, number]): number {
  const [first, second, third] = recent
  const index = value > 3 ? 3 : literals === 0 ? value : value - 1
  if (index === 0) return first
  const offset = value > 3 ? value - 3 : index === 1 ? second : index === 2 ? third : first - 1
  if (index > 1) recent[2] = second
  recent[1] = first
  recent[0] = offset
  return offset
}
