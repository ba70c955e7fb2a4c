/** Returns the 95 % Wilson interval of a share (Wilson, JASA 1927), which is also accurate near 0 and 1. */
export function wilsonInterval(successes: number, count: number): [number, number] {
  if (count === 0) return [0, 1]
  const z = 1.959964
  const share = successes / count
  const center = (share + (z * z) / (2 * count)) / (1 + (z * z) / count)
  const half = (z * Math.sqrt((share * (1 - share)) / count + (z * z) / (4 * count * count))) / (1 + (z * z) / count)
  // At shares of 0 and 1 the bound equals the share; min and max remove rounding errors.
  return [Math.max(Math.min(center - half, share), 0), Math.min(Math.max(center + half, share), 1)]
}
