import { expect, it } from "vitest"
import { stripVolatileText } from "../../src/chat/normalize.ts"

it.each([
  ["done at 2026-11-23T05:59:01.123Z", "done at <time>"],
  ["2026-11-23 05:59:01 and 2026-11-23T05:59:01+01:00.", "<time> and <time>."],
  ["order 3F2504E0-4f89-11d3-9a0c-0305e82c3301 sent", "order <uuid> sent"],
  ["call_aB3dE6gH9jK2mN5p of chatcmpl-0123456789abcdef01", "<id> of <id>"],
])("leaves out of %j what surely differs each time", (text, clean) => {
  expect(stripVolatileText(text)).toBe(clean)
})

it.each([
  "the meeting of 2026-11-23 at 10:30",
  "room 12, 3 of 5 keys, order 4711",
  "call_function and msg_internationalization",
  "sha 9f86d081884c7d65",
  "12026-11-23T05:59:01x",
])("keeps what a task may be about: %j", (text) => {
  expect(stripVolatileText(text)).toBe(text)
})

it("takes no longer for what is long", () => {
  const text = `call_${"a".repeat(1_000_000)} ${"2026-".repeat(100_000)}`
  expect(stripVolatileText(text)).toBe(text)
})
