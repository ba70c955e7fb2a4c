import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { Archives } from "../../src/engine-server/archives.ts"
import { KeptWeights } from "../../src/engine-server/kept-weights.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }))
afterEach(() => void vi.useRealTimers())

it("are few for each checkpoint, however often its archive is asked for, and are forgotten once they expire", () => {
  const archives = new Archives(new KeptWeights("/nowhere"))
  const offers = Array.from({ length: 1000 }, () => archives.offer("tinker://a/weights/b"))
  expect(new Set(offers).size).toBe(1)
  for (let minute = 0; minute < 600; minute++) {
    vi.advanceTimersByTime(60_000)
    archives.offer("tinker://a/weights/b")
    expect(archives.size).toBeLessThanOrEqual(3) // a new one each hour, valid for two
  }
})
