import { expect } from "vitest"

// `toMatchObject` compares a regular expression by its own properties, of which there are none: every text would be equal to it.
expect.addEqualityTesters([
  (actual: unknown, expected: unknown) =>
    expected instanceof RegExp && typeof actual === "string" ? expected.test(actual) : undefined,
])
