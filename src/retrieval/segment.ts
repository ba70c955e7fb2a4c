/** Postings of up to 65,536 consecutive documents: documents of each term and counts. */
export interface Segment {
  /** Index of the first document. */
  readonly base: number
  readonly size: number
  /** Terms that occur, ascending. */
  readonly terms: Uint32Array
  /** [terms + 1]: start of the postings of each term. */
  readonly starts: Uint32Array
  /** [postings]: document, relative to `base`, ascending within a term. */
  readonly documents: Uint16Array
  /** [postings]: count of the term in the document; 255 means see `frequent`. */
  readonly counts: Uint8Array
  /** Counts of 255 or more, by posting. */
  readonly frequent: ReadonlyMap<number, number>
  /** [size]: length of each document as one byte. */
  readonly lengths: Uint8Array
  /** Concatenated ids in UTF-8, and the start of each; [size + 1]. */
  readonly ids: Uint8Array
  readonly idStarts: Uint32Array
}

/** Postings of a term that a segment lacks. */
const none = { from: 0, to: 0 }

/** Range of the postings of a term. */
export function postingsOf({ terms, starts }: Segment, term: number): { from: number; to: number } {
  let low = 0
  let high = terms.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (terms[middle]! < term) low = middle + 1
    else high = middle
  }
  return terms[low] === term ? { from: starts[low]!, to: starts[low + 1]! } : none
}

/** Compares two ids by UTF-8 bytes, which is the order of code points. */
export function compareIds(a: Segment, i: number, b: Segment, j: number): number {
  const end = a.idStarts[i + 1]!
  const otherEnd = b.idStarts[j + 1]!
  let at = a.idStarts[i]!
  let other = b.idStarts[j]!
  for (; at < end && other < otherEnd; at++, other++) {
    const difference = a.ids[at]! - b.ids[other]!
    if (difference !== 0) return difference
  }
  return end - at - (otherEnd - other)
}

export function idOf({ ids, idStarts }: Segment, i: number): string {
  return Buffer.from(ids.buffer, ids.byteOffset + idStarts[i]!, idStarts[i + 1]! - idStarts[i]!).toString()
}
