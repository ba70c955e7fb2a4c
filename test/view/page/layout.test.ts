import { describe, expect, it } from "vitest"
import { Random } from "../../../src/util/random.ts"
import { layered } from "../../../src/view/page/graph/layered.ts"
import type { Layout, LayoutRequest } from "../../../src/view/page/graph/layout.ts"
import { ranked } from "../../../src/view/page/graph/ranked.ts"

interface Area {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

const overlap = (a: Area, b: Area) =>
  Math.abs(a.x - b.x) < (a.width + b.width) / 2 - 0.01 && Math.abs(a.y - b.y) < (a.height + b.height) / 2 - 0.01

function randomRequest(random: Random, isTall: boolean): LayoutRequest {
  const boxes = Array.from({ length: 1 + random.below(25) }, () => ({
    width: 40 + random.below(80),
    height: 30 + random.below(60),
  }))
  const pairs = new Set(
    Array.from({ length: random.below(50) }, () => `${random.below(boxes.length)} ${random.below(boxes.length)}`),
  )
  const links = [...pairs].flatMap((pair) => {
    const [from, to] = pair.split(" ").map(Number) as [number, number]
    const size = { width: 20 + random.below(80), height: 18, weight: 1 + random.below(8) }
    return from === to ? [] : [{ from, to, ...size }]
  })
  return { boxes, links, isTall }
}

const areas = ({ boxes }: LayoutRequest, layout: Layout): Area[] =>
  boxes.map((size, box) => ({ ...size, ...layout.boxes[box]! }))

describe.each([
  ["ranked", ranked],
  ["layered", layered],
] as const)("the %s layout", (_, layout) => {
  it("lets no boxes overlap and nothing stand outside, whatever leads where", () => {
    for (let seed = 0; seed < 60; seed++) {
      const request = randomRequest(new Random(seed), seed % 2 === 0)
      const made = layout(request)
      const boxes = areas(request, made)
      for (const [at, one] of boxes.entries()) {
        for (const other of boxes.slice(at + 1)) expect(overlap(one, other)).toBe(false)
        expect(one.x - one.width / 2).toBeGreaterThanOrEqual(-0.01)
        expect(one.y + one.height / 2).toBeLessThanOrEqual(made.height + 0.01)
        expect(one.x + one.width / 2).toBeLessThanOrEqual(made.width + 0.01)
      }
      expect(made.links).toHaveLength(request.links.length)
      for (const { points } of made.links) expect(points.length).toBeGreaterThanOrEqual(2)
    }
  })

  it("goes from the start to the ends, to the right or down", () => {
    const boxes = Array.from({ length: 4 }, () => ({ width: 50, height: 50 }))
    const links = [0, 1, 2].map((from) => ({ from, to: from + 1, width: 30, height: 18, weight: 1 }))
    const flat = layout({ boxes, links, isTall: false }).boxes.map(({ x }) => x)
    expect(flat).toEqual(flat.toSorted((a, b) => a - b))
    const tall = layout({ boxes, links, isTall: true }).boxes.map(({ y }) => y)
    expect(tall).toEqual(tall.toSorted((a, b) => a - b))
  })
})

it("leaves room for labels: none lies on a box or on another", () => {
  for (let seed = 0; seed < 60; seed++) {
    const request = randomRequest(new Random(seed), seed % 2 === 0)
    const made = ranked(request)
    const boxes = areas(request, made)
    const labels = request.links.map(
      ({ width, height }, link): Area => ({ width, height, ...made.links[link]!.label! }),
    )
    for (const [at, label] of labels.entries()) {
      for (const other of [...boxes, ...labels.slice(at + 1)]) expect(overlap(label, other)).toBe(false)
    }
  }
})
