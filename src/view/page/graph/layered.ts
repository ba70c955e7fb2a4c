import type { Layout, LayoutRequest, Point } from "./layout.ts"

/**
 * Simple layout for pages in which no worker may run: boxes are in ranks by their distance from the first box, in the order of first
 * occurrence. Boxes do not overlap; crossings of lines are not minimized.
 */
export function layered({ boxes, links, isTall }: LayoutRequest): Layout {
  const rank = ranksOf(boxes.length, links)
  const ranks: number[][] = []
  for (const [box, at] of rank.entries()) ranks[at] = [...(ranks[at] ?? []), box]
  // `along` is the direction from rank to rank, `across` within a rank. Labels are in the gaps between ranks.
  const along = (size: { width: number; height: number }) => (isTall ? size.height : size.width)
  const across = (size: { width: number; height: number }) => (isTall ? size.width : size.height)
  const gap = 48 + Math.max(0, ...links.map(along))
  const place = (far: number, side: number): Point => (isTall ? { x: side, y: far } : { x: far, y: side })
  const centres = new Array<Point>(boxes.length)
  let [far, widest] = [0, 0]
  for (const members of ranks) {
    const deep = Math.max(...members.map((box) => along(boxes[box]!)))
    let side = 0
    for (const box of members) {
      centres[box] = place(far + deep / 2, side + across(boxes[box]!) / 2)
      side += across(boxes[box]!) + 36
    }
    widest = Math.max(widest, side)
    far += deep + gap
  }
  const size = place(far, widest)
  return {
    width: size.x,
    height: size.y,
    boxes: centres,
    links: links.map(({ from, to }) => ({ points: [centres[from]!, centres[to]!] })),
  }
}

function ranksOf(boxes: number, links: LayoutRequest["links"]): number[] {
  const next: number[][] = Array.from({ length: boxes }, () => [])
  for (const { from, to } of links) next[from]!.push(to)
  const rank = new Array<number>(boxes).fill(-1)
  for (let first = 0; first < boxes; first++) {
    if (rank[first] !== -1) continue
    rank[first] = 0
    const reached = [first]
    for (const box of reached) {
      for (const to of next[box]!) {
        if (rank[to] !== -1) continue
        rank[to] = rank[box]! + 1
        reached.push(to)
      }
    }
  }
  return rank
}
