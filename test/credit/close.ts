import { expect } from "vitest"

/** Equal to `tolerance`, absolute, with the whole arrays in the message when they are not. */
export function expectClose(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance = 1e-12): void {
  const near = (value: number, i: number) => Math.abs(value - (expected[i] ?? Number.NaN)) <= tolerance
  const message = `[${Array.from(actual)}] is not [${Array.from(expected)}]`
  expect(actual.length === expected.length && Array.from(actual).every(near), message).toBe(true)
}
