import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { Activity } from "../../src/cli/terminal/activity.ts"

let messages: string[]
let activity: Activity

beforeEach(() => {
  vi.useFakeTimers()
  messages = []
  activity = new Activity((text) => messages.push(text))
})
afterEach(() => {
  activity.stop()
  vi.useRealTimers()
})

const never = () => new Promise<never>(() => {})
const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1000)

it("announces long work at growing intervals, and nothing for quick work", async () => {
  activity.start("gigpo report", 2)
  await activity.during("a quick thing", () => pass(1.5))
  await pass(0.1)
  expect(messages).toEqual([])
  void activity.during("opening the model m", never)
  await pass(400)
  const times = messages.map((text) => /^Waiting \((.+)\): opening the model m\.\n$/.exec(text)?.[1])
  expect(times).toEqual(["0.4 s", "4.4 s", "12 s", "28 s", "60 s", "2 min", "3 min", "4 min", "5 min", "6 min"])
})

it("names the command if nothing else is known", async () => {
  activity.start("gigpo report", 2)
  await pass(2)
  expect(messages).toEqual(["Waiting (2.0 s): gigpo report.\n"])
})

it("restarts the interval after output", async () => {
  activity.start("gigpo train", 2)
  for (let i = 0; i < 10; i++) {
    await pass(1.5)
    activity.printed()
  }
  expect(messages).toEqual([])
})

it("is silent with a live display, while waiting for input, or if disabled", async () => {
  activity.start("gigpo train", 2)
  activity.printed(true)
  await pass(60)
  activity.printed(false)
  const typed = activity.idle(() => pass(60))
  await typed
  expect(messages).toEqual([])
  await pass(2)
  expect(messages).toHaveLength(1)
  activity.start("gigpo train", 0)
  await pass(60)
  expect(messages).toHaveLength(1)
})

it("shows the newest description, evaluated again each time", async () => {
  activity.start("gigpo train", 2)
  let done = 0
  const progress = activity.begin(() => `episode ${done}`)
  activity.begin(() => undefined)
  done = 3
  await pass(2)
  expect(messages.at(-1)).toContain("episode 3")
  progress.what = "\x1b[31mred"
  await pass(4)
  expect(messages.at(-1)).toMatch(/^Waiting \(6\.0 s\): .*red\.\n$/)
  expect(messages.at(-1)).not.toContain("\x1b")
  activity.end(progress)
  await pass(8)
  expect(messages.at(-1)).toContain("gigpo train")
})

it("a failure ends the work", async () => {
  activity.start("gigpo train", 2)
  const failing = activity.during("a thing that fails", () => Promise.reject(new Error("no")))
  await expect(failing).rejects.toThrow("no")
  await pass(2)
  expect(messages).toEqual(["Waiting (2.0 s): gigpo train.\n"])
})
