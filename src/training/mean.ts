/** Returns the mean, or 0 for no values. */
export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Returns an object with the weighted mean under a name. The object is empty if the sum of the weights is 0. */
export function meanAs(
  name: string,
  values: readonly number[],
  weights: readonly number[] = values.map(() => 1),
): Readonly<Record<string, number>> {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  return total === 0 ? {} : { [name]: values.reduce((sum, value, i) => sum + value * weights[i]!, 0) / total }
}
