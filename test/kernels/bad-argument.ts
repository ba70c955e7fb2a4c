import { expect } from "vitest"

/** A GigpoError about an argument, whose message matches. */
export const badArgument = (message: RegExp): unknown =>
  expect.objectContaining({ name: "GigpoError", code: "BAD_ARGUMENT", message: expect.stringMatching(message) })
