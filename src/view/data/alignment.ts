/** Aligned indices of two sequences; one is absent if the other element has no counterpart. */
export interface Aligned {
  readonly left?: number
  readonly right?: number
}

/**
 * Aligns two sequences by a longest common subsequence. Takes time and memory of left × right; above `most`, only the equal beginnings and
 * ends are aligned.
 */
export function align<Element>(left: readonly Element[], right: readonly Element[], most = 4_000_000): Aligned[] {
  let start = 0
  while (start < Math.min(left.length, right.length) && left[start] === right[start]) start++
  let end = 0
  while (end < Math.min(left.length, right.length) - start && left.at(-1 - end) === right.at(-1 - end)) end++
  const [rows, across] = [left.length - start - end, right.length - start - end]
  const width = across + 1
  // [rows + 1][across + 1] Length of the longest common subsequence of the remaining elements.
  const table = rows * across > most ? undefined : new Uint32Array((rows + 1) * width)
  for (let row = rows - 1; table && row >= 0; row--)
    for (let at = across - 1; at >= 0; at--) {
      const here = row * width + at
      table[here] =
        left[start + row] === right[start + at]
          ? table[here + width + 1]! + 1
          : Math.max(table[here + width]!, table[here + 1]!)
    }
  const aligned: Aligned[] = Array.from({ length: start }, (_, at) => ({ left: at, right: at }))
  let [row, at] = [0, 0]
  while (row < rows || at < across) {
    const here = row * width + at
    if (table && row < rows && at < across && left[start + row] === right[start + at])
      aligned.push({ left: start + row++, right: start + at++ })
    else if (at === across || (row < rows && (!table || table[here + width]! >= table[here + 1]!)))
      aligned.push({ left: start + row++ })
    else aligned.push({ right: start + at++ })
  }
  for (let left = start + rows, right = start + across; end-- > 0; left++, right++) aligned.push({ left, right })
  return aligned
}
