import { expect, it } from "vitest"
import { both, character, except, normal } from "../../src/grammar/characters.ts"
import type { Range } from "../../src/grammar/node.ts"
import { Random } from "../../src/util/random.ts"
import { holder } from "./texts.ts"

const edges = [
  0, 0x41, 0x7f, 0x80, 0xbf, 0xff, 0x7ff, 0x800, 0xfff, 0x1000, 0xd7ff, 0xe000, 0xfffd, 0xffff, 0x10000, 0x10ffff,
]
const points = [...new Set(edges.flatMap((edge) => [edge - 1, edge, edge + 1]))].filter(
  (point) => point >= 0 && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff),
)
const within = (ranges: readonly Range[], point: number) => ranges.some(([low, high]) => low <= point && point <= high)

it("holds exactly the characters of its ranges", () => {
  const random = new Random(1)
  for (let trial = 0; trial < 60; trial++) {
    const ranges = Array.from({ length: 1 + random.below(3) }, (): Range => {
      const [a, b] = [points[random.below(points.length)]!, points[random.below(points.length)]!]
      return [Math.min(a, b), Math.max(a, b)]
    })
    const holds = holder(character(ranges))
    for (const point of [...points, random.below(0xd800), 0xe000 + random.below(0x102000)])
      expect(holds(String.fromCodePoint(point)), `${point} of ${JSON.stringify(ranges)}`).toBe(within(ranges, point))
  }
})

it("holds one character, whole", () => {
  const holds = holder(character([[0, 0x10ffff]]))
  expect(["", "ab", "é", "€", "😀"].map(holds)).toEqual([false, false, true, true, true])
})

it("puts ranges in order, takes them away from each other, and keeps what they share", () => {
  expect(normal([[5, 9], [1, 3], [4, 6], [20, 10]])).toEqual([[1, 9]]) // biome-ignore format: one line
  expect(except([[0, 4], [10, 0x10ffff]])).toEqual([[5, 9]]) // biome-ignore format: one line
  expect(both([[1, 8]], [[0, 2], [6, 20]])).toEqual([[1, 2], [6, 8]]) // biome-ignore format: one line
})
