import { describe, expect, it } from "vitest"
import { groupAnchors } from "../../src/kernels/group-anchors.ts"
import { deviceReport } from "../../src/native/device.ts"
import { Random } from "../../src/util/random.ts"
import { badArgument } from "./bad-argument.ts"

const gpus = deviceReport().devices.length

describe("groupAnchors", () => {
  const encoder = new TextEncoder()
  function toBytes(anchors: readonly string[]): { bytes: Uint8Array; offsets: Float64Array } {
    const parts = anchors.map((anchor) => encoder.encode(anchor))
    const offsets = new Float64Array(anchors.length + 1)
    for (const [i, part] of parts.entries()) offsets[i + 1] = offsets[i]! + part.length
    const bytes = new Uint8Array(offsets.at(-1)!)
    for (const [i, part] of parts.entries()) bytes.set(part, offsets[i]!)
    return { bytes, offsets }
  }

  /** The specification. */
  function groupByMap(tasks: ArrayLike<number | string>, anchors: readonly string[]): number[] {
    const ids = new Map<string, number>()
    return anchors.map((anchor, i) => {
      const key = JSON.stringify([tasks[i], anchor])
      if (!ids.has(key)) ids.set(key, ids.size)
      return ids.get(key)!
    })
  }

  function expectTexts(tasks: ArrayLike<number | string>, anchors: readonly string[]): void {
    expect([...groupAnchors(tasks, anchors).groups]).toEqual(groupByMap(tasks, anchors))
  }

  function expectGroups(tasks: ArrayLike<number | string>, anchors: readonly string[]): void {
    const wanted = groupByMap(tasks, anchors)
    const count = wanted.reduce((most, group) => Math.max(most, group + 1), 0)
    for (const given of [anchors, toBytes(anchors)]) {
      const found = groupAnchors(tasks, given)
      expect([...found.groups]).toEqual(wanted)
      expect(found.count).toBe(count)
    }
  }

  it("numbers states in the order in which they first occur", () => {
    expectGroups([0, 0, 0, 0, 0], ["b", "a", "b", "c", "a"])
    expect([...groupAnchors([0, 0, 0], ["b", "a", "b"]).groups]).toEqual([0, 1, 0])
  })

  it("never joins states of different tasks, be their keys numbers or strings", () => {
    expectGroups([5, 7, 5, 7], ["a", "a", "a", "a"])
    expectGroups(["x", "y", "x", "z"], ["a", "a", "a", "a"])
    expectGroups(Int32Array.of(-1, 2 ** 31 - 1, -1, 0), ["a", "a", "a", "a"])
  })

  it("compares every byte: beginnings, ends, lengths, zeros, letters beyond ASCII", () => {
    const anchors = ["", "a", "ab", "a\0", "a\0\0", "\0", "é", "e\u0301", "日本", "日木", "🎲", "🎱", "x".repeat(200)]
    const all = [...anchors, `${"x".repeat(199)}y`, `y${"x".repeat(199)}`, "x".repeat(64), "x".repeat(65), ...anchors]
    expectGroups(new Int32Array(all.length), all)
  })

  it("accepts strings that UTF-8 cannot represent, together with others", () => {
    // Lone halves of pairs are all one character in UTF-8; "A\0" in UTF-16 has the bytes of "A" and of a zero.
    const halves = ["\ud800", "\udc00", "\ud800\udc00", "\udc00\ud800", "\ufffd", "a\ud800", "a\udbff", "A", "A\0"]
    for (const anchors of [halves, halves.toReversed()]) {
      const all = [...anchors, "plain", "é", ...anchors, "plain", "é"]
      expectTexts(new Int32Array(all.length), all)
    }
  })

  it.skipIf(gpus > 0)("rejects its promise without a GPU", async () => {
    for (const anchors of [["a"], toBytes(["a"])])
      await expect(groupAnchors([0], anchors, { device: "cuda" })).rejects.toMatchObject({ code: "DEVICE_UNAVAILABLE" })
    await expect(groupAnchors([0, 1], ["a"], { device: "cuda" })).rejects.toThrow(badArgument(/1 anchors need/))
  })

  it("returns no groups for no states", () => {
    expectGroups([], [])
    expect(groupAnchors([], { bytes: new Uint8Array(0), offsets: Float64Array.of(0) }).count).toBe(0)
  })

  it("agrees with a Map on many states, in few tasks and in many", () => {
    const random = new Random(6)
    for (const tasks of [1, 7, 3000]) {
      const count = 20_000
      const keys = Int32Array.from({ length: count }, () => random.below(tasks))
      const anchors = Array.from({ length: count }, () => "#. _@$".repeat(random.below(6)) + random.below(40))
      expectGroups(keys, anchors)
    }
  })

  it("agrees with a Map for texts processed a few tasks at a time", () => {
    const random = new Random(9)
    const room = "#".repeat(20_000)
    const anchors = Array.from({ length: 600 }, () => `${room}${random.below(20)}${random.below(9) ? "" : "\udc00"}`)
    for (const task of [(i: number) => Math.floor(i / 90), (i: number) => i % 7, () => 0])
      expectTexts(
        Int32Array.from(anchors, (_, i) => task(i)),
        anchors,
      )
  })

  it("agrees with a Map for inputs large enough for several threads", () => {
    const random = new Random(7)
    const count = 3000
    const room = "#".repeat(5000)
    const anchors = Array.from({ length: count }, () => `${room}${random.below(200)}`)
    expectGroups(
      Int32Array.from({ length: count }, () => random.below(4)),
      anchors,
    )
  })

  it.each<[string, () => unknown, RegExp]>([
    ["as many tasks as anchors", () => groupAnchors([0], ["a", "b"]), /2 anchors need as many tasks, not 1/],
    [
      "one offset more than states",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0) }),
      /1 states need 2 offsets, not 1/,
    ],
    [
      "offsets that do not decrease",
      () => groupAnchors([0, 0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0, 2, 1) }),
      /offsets\[2\] is 1/,
    ],
    [
      "offsets within the bytes",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0, 3) }),
      /offsets\[1\] is 3.*up to 2/,
    ],
    [
      "offsets that are whole",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(0, 0.5) }),
      /offsets\[1\] is 0\.5/,
    ],
    [
      "offsets that are numbers",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(NaN, 1) }),
      /offsets\[0\] is NaN/,
    ],
    [
      "offsets that are not negative",
      () => groupAnchors([0], { bytes: new Uint8Array(2), offsets: Float64Array.of(-1, 1) }),
      /offsets\[0\] is -1/,
    ],
  ])("wants %s", (_, call, message) => {
    expect(call).toThrow(badArgument(message))
  })
})
