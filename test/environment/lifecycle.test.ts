import { expect, it } from "vitest"
import { Lifecycle } from "../../src/environment/lifecycle.ts"

const disposed = expect.objectContaining({
  code: "DISPOSED",
  message: "This Chess episode was disposed; start a new one.",
})

it("allows steps until the end, and then reports that the episode is over", () => {
  const life = new Lifecycle("Chess", new AbortController().signal)
  life.check()
  life.check()
  life.end()
  expect(() => life.check()).toThrow(
    expect.objectContaining({ code: "BAD_ARGUMENT", message: "This Chess episode has ended; start a new one." }),
  )
  life.dispose()
  expect(() => life.check()).toThrow(disposed)
})

it("stays disposed if a step in progress ends the episode afterwards", () => {
  const life = new Lifecycle("Chess", new AbortController().signal)
  life.dispose()
  life.end()
  expect(() => life.check()).toThrow(disposed)
})

it("neither starts nor continues after an abort of its signal", () => {
  const controller = new AbortController()
  const life = new Lifecycle("Chess", controller.signal)
  controller.abort(new Error("enough"))
  expect(() => life.check()).toThrow("enough")
  expect(() => new Lifecycle("Chess", controller.signal)).toThrow("enough")
})
