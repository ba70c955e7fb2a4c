/**
 * Set of code points as ascending boundaries [first, end, first, end, …] with exclusive ends. Sets are data, because classes of regular
 * expressions depend on the Unicode version of Node.js.
 */
export type CodePoints = readonly number[]

const codePointEnd = 0x110000

export function union(...sets: readonly CodePoints[]): CodePoints {
  return sets.reduce((a, b) => combine(a, b, (inA, inB) => inA || inB), [])
}

export function intersection(a: CodePoints, b: CodePoints): CodePoints {
  return combine(a, b, (inA, inB) => inA && inB)
}

export function complement(set: CodePoints): CodePoints {
  return combine(set, [0, codePointEnd], (inSet, inAll) => inAll && !inSet)
}

export function difference(a: CodePoints, b: CodePoints): CodePoints {
  return intersection(a, complement(b))
}

function combine(a: CodePoints, b: CodePoints, keep: (inA: boolean, inB: boolean) => boolean): number[] {
  const boundaries: number[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const at = Math.min(a[i] ?? codePointEnd, b[j] ?? codePointEnd)
    if (a[i] === at) i++
    if (b[j] === at) j++
    // Inside a set after an odd number of its boundaries.
    if (keep(i % 2 === 1, j % 2 === 1) !== (boundaries.length % 2 === 1)) boundaries.push(at)
  }
  return boundaries
}

/** Set from a list in hexadecimal, "41-5a 61". */
export function parseCodePoints(list: string): CodePoints {
  return list.split(" ").flatMap((range) => {
    const [first, last = first] = range.split("-").map((digits) => Number.parseInt(digits, 16))
    return [first!, last! + 1]
  })
}

/** Class of a regular expression with flag u or v. */
export function classSource(set: CodePoints): string {
  return `[${rangeSource(set)}]`
}

/** Members of a class. */
export function rangeSource(set: CodePoints): string {
  let source = ""
  for (let i = 0; i < set.length; i += 2) {
    const [first, last] = [set[i]!, set[i + 1]! - 1]
    source += first === last ? escaped(first) : `${escaped(first)}-${escaped(last)}`
  }
  return source
}

export function escaped(codePoint: number): string {
  return `\\u{${codePoint.toString(16)}}`
}
