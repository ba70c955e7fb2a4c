import { choice, type Node, type Range, sequence } from "./node.ts"

// Characters in UTF-8. https://www.rfc-editor.org/rfc/rfc3629 §3: a code point of up to 7, 11, 16 or 21 bits takes one to four bytes. The
// first byte determines their number; each following byte contains 6 bits. Surrogates are not characters.

const last = 0x10ffff

/** Grammar of one character from ranges of code points. */
export function character(ranges: readonly Range[]): Node {
  const single: Range[] = []
  const longer: Node[] = []
  for (const range of normal(ranges)) {
    if (range[0] < 0x80) single.push([range[0], Math.min(range[1], 0x7f)])
    for (const [low, high, bytes] of [
      [0x80, 0x7ff, 2],
      [0x800, 0xd7ff, 3],
      [0xe000, 0xffff, 3],
      [0x10000, last, 4],
    ] as const)
      if (range[0] <= high && range[1] >= low)
        longer.push(...encoded(Math.max(range[0], low), Math.min(range[1], high), bytes))
  }
  return choice([...(single.length > 0 ? [{ kind: "bytes", ranges: single } as const] : []), ...longer])
}

/** Ranges in ascending order without overlaps. */
export function normal(ranges: readonly Range[]): Range[] {
  const sorted = ranges.filter(([low, high]) => low <= high).toSorted((a, b) => a[0] - b[0])
  const merged: [number, number][] = []
  for (const [low, high] of sorted) {
    const before = merged.at(-1)
    if (before && low <= before[1] + 1) before[1] = Math.max(before[1], high)
    else merged.push([low, high])
  }
  return merged
}

/** All characters outside the ranges. */
export function except(ranges: readonly Range[]): Range[] {
  const others: Range[] = []
  let from = 0
  for (const [low, high] of normal(ranges)) {
    if (low > from) others.push([from, low - 1])
    from = high + 1
  }
  if (from <= last) others.push([from, last])
  return others
}

/** Intersection of two lists of ranges. */
export function both(one: readonly Range[], other: readonly Range[]): Range[] {
  const [left, right] = [normal(one), normal(other)]
  const common: Range[] = []
  for (let i = 0, j = 0; i < left.length && j < right.length; ) {
    const [from, to] = [Math.max(left[i]![0], right[j]![0]), Math.min(left[i]![1], right[j]![1])]
    if (from <= to) common.push([from, to])
    if (left[i]![1] < right[j]![1]) i++
    else j++
  }
  return common
}

/** Grammar of a range of code points of `bytes` bytes each, split so that following bytes cover their whole range. */
function encoded(low: number, high: number, bytes: number): Node[] {
  for (let follow = bytes - 1; follow > 0; follow--) {
    const size = 64 ** follow // code points with the same bytes before these
    const [first, final] = [Math.floor(low / size), Math.floor(high / size)]
    if (first === final) continue
    if (low % size !== 0) {
      const cut = (first + 1) * size
      return [...encoded(low, cut - 1, bytes), ...encoded(cut, high, bytes)]
    }
    if (high % size !== size - 1) {
      const cut = final * size
      return [...encoded(low, cut - 1, bytes), ...encoded(cut, high, bytes)]
    }
  }
  const [from, to] = [utf8(low), utf8(high)]
  return [sequence(...from.map((byte, i): Node => ({ kind: "bytes", ranges: [[byte, to[i]!]] })))]
}

function utf8(point: number): number[] {
  return [...Buffer.from(String.fromCodePoint(point))]
}
