import type { Layout, Point } from "./layout.ts"

/** Rectangle relative to the centre of a box. */
export interface Frame {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

type Route = Layout["links"][number]

/** Distance in pixels between a box and the middle of its loop, an arrow that leads back to the box. */
const swing = 18

/** Space in pixels that the loop of a box and its label need: above the box, or to its right if ranks are from top to bottom. */
export function loopRoom(label: { readonly width: number; readonly height: number }, isTall: boolean): number {
  return isTall ? swing + label.width : swing + label.height
}

/** Route of a loop. */
export function loopRoute(
  frame: Frame,
  { x, y }: Point,
  label: { readonly width: number; readonly height: number },
  isTall: boolean,
): Route {
  const [left, top] = [x + frame.x, y + frame.y]
  const [middle, right] = [{ x: left + frame.width / 2, y: top + frame.height / 2 }, left + frame.width]
  const half = Math.min(14, (isTall ? frame.height : frame.width) / 4)
  // `along` the side of the box, and `out` from the box.
  const at = (along: number, out: number): Point =>
    isTall ? { x: right + out, y: middle.y + along } : { x: middle.x + along, y: top - out }
  const bulge = half + 4
  const points = [at(-half, 0), at(-bulge, swing * 0.55), at(0, swing), at(bulge, swing * 0.55), at(half, 0)]
  return { points, label: at(0, swing + (isTall ? label.width : label.height) / 2) }
}

/** Route shortened to begin and end at the frames of its boxes; its bends are kept. */
export function clipRoute(route: Route, from: Frame, start: Point, to: Frame, end: Point): Route {
  const bends = route.points.slice(1, -1)
  const [first, last] = [bends[0] ?? middleOf(to, end), bends.at(-1) ?? middleOf(from, start)]
  return { ...route, points: [border(from, start, first), ...bends, border(to, end, last)] }
}

function middleOf({ x, y, width, height }: Frame, at: Point): Point {
  return { x: at.x + x + width / 2, y: at.y + y + height / 2 }
}

/** Point at which a line from the middle of a frame towards another point leaves the frame. */
function border(frame: Frame, at: Point, towards: Point): Point {
  const middle = middleOf(frame, at)
  const [x, y] = [towards.x - middle.x, towards.y - middle.y]
  const share = Math.min(frame.width / 2 / Math.abs(x), frame.height / 2 / Math.abs(y), 1)
  return { x: middle.x + x * share, y: middle.y + y * share }
}

/** SVG path of a smooth curve through all points that does not overshoot where its direction reverses (limit of Fritsch and Carlson, 1980). */
export function curve(points: readonly Point[]): string {
  const at = (place: number) => points[Math.max(0, Math.min(points.length - 1, place))]!
  const slope = (place: number): Point => {
    const [before, here, after] = [at(place - 1), at(place), at(place + 1)]
    return { x: limited(here.x - before.x, after.x - here.x), y: limited(here.y - before.y, after.y - here.y) }
  }
  let path = `M${at(0).x} ${at(0).y}`
  for (let to = 1; to < points.length; to++) {
    const [from, end, leave, enter] = [at(to - 1), at(to), slope(to - 1), slope(to)]
    const [first, last] = [to === 1, to === points.length - 1]
    // At its ends, a curve points straight to its neighbour.
    const one = first ? { x: (end.x - from.x) / 3, y: (end.y - from.y) / 3 } : { x: leave.x / 3, y: leave.y / 3 }
    const two = last ? { x: (end.x - from.x) / 3, y: (end.y - from.y) / 3 } : { x: enter.x / 3, y: enter.y / 3 }
    path += `C${from.x + one.x} ${from.y + one.y} ${end.x - two.x} ${end.y - two.y} ${end.x} ${end.y}`
  }
  return path
}

function limited(before: number, after: number): number {
  if (before * after <= 0) return 0
  return Math.sign(after) * Math.min(Math.abs(before + after) / 2, 3 * Math.abs(before), 3 * Math.abs(after))
}
