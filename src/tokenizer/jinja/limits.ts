import type { Pieces } from "../../util/pace.ts"
import { fail } from "./errors.ts"

/** Limits of a render. */
export interface RenderLimits {
  /** Maximum length of a text or list, in UTF-16 units or items. */
  readonly maxLength: number
  /** Time limit in milliseconds. */
  readonly timeoutMs: number
}

/** Maximum total length of all texts and lists of a render, as a multiple of `maxLength`. */
const totalFactor = 64
/** Number of steps between two checks of the time. Reading this many characters or items also counts as one step. */
const clockEvery = 512
const readingPerStep = 128
/** Maximum time that counts between two checks, in milliseconds, so that time in which the process is suspended does not count. */
const longestSlice = 10

// Remaining budget of the current render.
let maxLength = Number.POSITIVE_INFINITY
let timeLeft = Number.POSITIVE_INFINITY
let lastLook = 0
let left = Number.POSITIVE_INFINITY
let steps = 0

/** Runs work with limits. During pauses, other work may run with its own limits. Fails with TimeoutError if the work takes too long. */
export function* underLimits<T>(limits: RenderLimits, work: Pieces<T>): Pieces<T> {
  let own = { timeLeft: limits.timeoutMs, left: limits.maxLength * totalFactor }
  for (;;) {
    maxLength = limits.maxLength
    timeLeft = own.timeLeft
    left = own.left
    lastLook = performance.now()
    try {
      const { done, value } = work.next()
      if (done) return value
      look()
    } finally {
      own = { timeLeft, left }
      maxLength = timeLeft = left = Number.POSITIVE_INFINITY
    }
    yield
  }
}

/** Counts a step of work that reads a text or list of a given length. Must be called wherever work may repeat. */
export function step(reading = 0): void {
  steps += 1 + reading / readingPerStep
  if (steps < clockEvery) return
  look()
}

function look(): void {
  steps = 0
  const now = performance.now()
  timeLeft -= Math.min(now - lastLook, longestSlice)
  lastLook = now
  if (timeLeft < 0) fail("TimeoutError", "it ran too long")
}

/** Reserves the length of a text or list before it is created. */
export function reserve(length: number): void {
  step(length)
  left -= length
  if (!(length <= maxLength)) fail("OverflowError", `it makes a text or a list longer than ${maxLength}`)
  if (left < 0) fail("OverflowError", `its texts and lists together are longer than ${maxLength * totalFactor}`)
}

/** Reserves the length of a new text or list and returns it. */
export function limited<T extends { readonly length: number }>(value: T): T {
  reserve(value.length)
  return value
}
