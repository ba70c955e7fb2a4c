import type { Point } from "./layout.ts"
import type { Zoom } from "./zoom.ts"

const step = 60

/**
 * Adds keyboard control. On the picture, arrow keys move, + and - zoom, and 0 fits the picture. On a node, Enter and Space choose it, arrow
 * keys move to the nearest node in that direction, and Home to the first. Only one node is a tab stop.
 */
export function steer(
  {
    svg,
    zoom,
    boxes,
    centres,
    chosen,
  }: {
    readonly svg: SVGSVGElement
    readonly zoom: Zoom
    readonly boxes: readonly SVGGElement[]
    readonly centres: readonly Point[]
    readonly chosen: (box: number) => void
  },
  signal: AbortSignal,
): void {
  boxes[0]?.setAttribute("tabindex", "0")
  const go = (from: number, to: number | undefined) => {
    if (to === undefined) return
    boxes[from]!.setAttribute("tabindex", "-1")
    boxes[to]!.setAttribute("tabindex", "0")
    boxes[to]!.focus({ preventScroll: true })
  }
  const ways: Record<string, readonly [number, number]> = {
    ArrowLeft: [-1, 0],
    ArrowRight: [1, 0],
    ArrowUp: [0, -1],
    ArrowDown: [0, 1],
  }
  svg.addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const box = boxes.indexOf(event.target as SVGGElement)
      const way = ways[event.key]
      if (way && box >= 0) go(box, nearest(centres, box, way))
      else if (way) zoom.pan(-way[0] * step, -way[1] * step)
      else if (event.key === "+" || event.key === "=") zoom.by(1.2)
      else if (event.key === "-") zoom.by(1 / 1.2)
      else if (event.key === "0") zoom.fit()
      else if (event.key === "Home" && box >= 0) go(box, 0)
      else if ((event.key === "Enter" || event.key === " ") && box >= 0) chosen(box)
      else return
      event.preventDefault()
    },
    { signal },
  )
  svg.addEventListener(
    "focusin",
    ({ target }) => {
      const box = boxes.indexOf(target as SVGGElement)
      if (box < 0) return
      for (const one of boxes) one.setAttribute("tabindex", one === target ? "0" : "-1")
      if ((target as Element).matches(":focus-visible")) zoom.reveal(centres[box]!)
    },
    { signal },
  )
}

/** Nearest point in a direction. Sideways distance counts twice. */
export function nearest(centres: readonly Point[], from: number, [right, down]: readonly [number, number]) {
  const start = centres[from]!
  let [best, least]: [number | undefined, number] = [undefined, Number.POSITIVE_INFINITY]
  for (const [at, { x, y }] of centres.entries()) {
    const along = (x - start.x) * right + (y - start.y) * down
    const aside = Math.abs((x - start.x) * down) + Math.abs((y - start.y) * right)
    const far = along + 2 * aside
    if (along > 1 && far < least) [best, least] = [at, far]
  }
  return best
}
