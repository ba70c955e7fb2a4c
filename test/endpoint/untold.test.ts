import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { OutputBuffer } from "../../src/endpoint/delivery.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const content = (text: string) => ({ kind: "content" as const, text })

/** What the next taking gives, once it does. */
function taking(untold: OutputBuffer) {
  const taken: { texts?: unknown[] } = {}
  void untold.take().then((parts) => {
    taken.texts = parts.map(({ piece }) => (piece.kind === "call" ? piece.name : piece.text))
  })
  return taken
}

it("gives the first part at once, and what follows together: a write for each token costs more than a small model's step", async () => {
  const untold = new OutputBuffer()
  const first = taking(untold)
  untold.add(0, content("a"), "id")
  await vi.advanceTimersByTimeAsync(0)
  expect(first.texts).toEqual(["a"])
  const second = taking(untold)
  for (const text of ["b", "c"]) {
    untold.add(0, content(text), "id")
    await vi.advanceTimersByTimeAsync(10)
    expect(second.texts).toBeUndefined()
  }
  untold.add(0, content("d"), "id")
  await vi.advanceTimersByTimeAsync(40)
  expect(second.texts).toEqual(["bcd"])
})

it("waits for nothing at the end", async () => {
  const untold = new OutputBuffer()
  untold.add(0, content("a"), "id")
  await untold.take()
  untold.add(0, content("b"), "id")
  const rest = taking(untold)
  await vi.advanceTimersByTimeAsync(1)
  expect(rest.texts).toBeUndefined()
  untold.end()
  await vi.advanceTimersByTimeAsync(0)
  expect(rest.texts).toEqual(["b"])
  expect(await untold.take()).toEqual([])
})
