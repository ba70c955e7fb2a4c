import type { Pieces } from "../../util/pace.ts"
import { fail } from "./errors.ts"

/** Limits of one render. */
export interface RenderLimits {
  /** Longest text or list that may come into being, in UTF-16 units or items. */
  readonly maxLength: number
  /** Longest time, in ms. */
  readonly timeoutMs: number
}

/** All texts and lists of one render together may be this many times as long as the longest one. */
const totalFactor = 64
/** Steps between two looks at the clock. Reading this many characters or items counts as one step. */
const clockEvery = 512
const readingPerStep = 128
/** Most that the time between two looks counts, in ms: a process that is suspended, or waits for a processor, does not work. */
const longestSlice = 10

/** What is left to the render that works at present. */
let maxLength = Number.POSITIVE_INFINITY
let timeLeft = Number.POSITIVE_INFINITY
let lastLook = 0
let left = Number.POSITIVE_INFINITY
let steps = 0

/** Runs work under limits. While it pauses, others may run under theirs. Work that runs too long fails with the kind TimeoutError. */
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

/** Marks one step of work, which reads a text or list of this length. Whatever may repeat calls this function. */
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

/** Reserves a text or list of this length, before it comes into being. */
export function reserve(length: number): void {
  step(length)
  left -= length
  if (!(length <= maxLength)) fail("OverflowError", `it makes a text or a list longer than ${maxLength}`)
  if (left < 0) fail("OverflowError", `its texts and lists together are longer than ${maxLength * totalFactor}`)
}

/** A new text or list, if it is not too long. */
export function limited<T extends { readonly length: number }>(value: T): T {
  reserve(value.length)
  return value
}
