import type { Point } from "./layout.ts"

/** Limits of the zoom factor. */
const scales = { least: 0.08, most: 4 }
/** Minimum initial scale. A larger picture initially shows its start, because a smaller scale is not legible. */
const readable = 0.6
/** Movement in pixels from which a press is no longer a click. */
const still = 4

export interface Zoom {
  /** Shows everything if legible, otherwise the start. */
  begin(): void
  /** Shows everything. */
  fit(): void
  /** Zooms by a factor around the middle. */
  by(factor: number): void
  /** Moves by pixels of the screen. */
  pan(x: number, y: number): void
  /** Scrolls a point of the drawing into view if it is not visible. */
  reveal(at: Point): void
}

/**
 * Moves and scales `world` within `frame`, by mouse wheel, by one or two fingers, and by the returned functions. The initial view contains
 * `start`.
 */
export function zoomable(
  frame: SVGSVGElement,
  world: SVGGElement,
  size: { readonly width: number; readonly height: number },
  start: Point,
  signal: AbortSignal,
): Zoom {
  const place = new Placement(world)
  followPointers(frame, place, signal)
  // Size of the visible part of the frame, which may be larger.
  const seen = () => ({ wide: frame.parentElement!.clientWidth, high: frame.clientHeight })
  const scaleTo = (least: number) => {
    const { wide, high } = seen()
    const scale = Math.max(Math.min(wide / size.width, high / size.height, 1.6), least)
    // A drawing that does not fit is placed so that `start` is near the middle, without empty space at the edges.
    const begin = (room: number, taken: number, start: number) =>
      taken <= room ? (room - taken) / 2 : Math.min(0, Math.max(room - taken, room / 2 - start))
    const x = begin(wide, size.width * scale, start.x * scale)
    place.set(x, begin(high, size.height * scale, start.y * scale), scale)
  }
  return {
    begin: () => scaleTo(readable),
    fit: () => scaleTo(scales.least),
    by(factor) {
      const { wide, high } = seen()
      place.around({ x: wide / 2, y: high / 2 }, factor)
    },
    pan: (right, down) => place.pan(right, down),
    reveal(at) {
      const margin = 60
      const into = (place: number, room: number) =>
        place < margin ? margin - place : place > room - margin ? room - margin - place : 0
      const { wide, high } = seen()
      const { x, y } = place.shown(at)
      const [right, down] = [into(x, wide), into(y, high)]
      if (right !== 0 || down !== 0) place.pan(right, down)
    },
  }
}

/** Position and scale of the drawing in the frame. */
class Placement {
  readonly #world: SVGGElement
  #x = 0
  #y = 0
  #scale = 1

  constructor(world: SVGGElement) {
    this.#world = world
  }

  set(x: number, y: number, scale: number): void {
    this.#x = x
    this.#y = y
    this.#scale = scale
    this.#world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`)
  }

  pan(right: number, down: number): void {
    this.set(this.#x + right, this.#y + down, this.#scale)
  }

  /** Scales by a factor; `at`, a point of the frame, stays where it is. */
  around(at: Point, factor: number): void {
    const next = Math.max(scales.least, Math.min(scales.most, this.#scale * factor))
    const x = at.x - ((at.x - this.#x) * next) / this.#scale
    this.set(x, at.y - ((at.y - this.#y) * next) / this.#scale, next)
  }

  /** Point of the frame at which a point of the drawing is shown. */
  shown({ x, y }: Point): Point {
    return { x: x * this.#scale + this.#x, y: y * this.#scale + this.#y }
  }
}

/** Scales by the mouse wheel and by two fingers, moves by one. */
function followPointers(frame: SVGSVGElement, place: Placement, signal: AbortSignal): void {
  const fingers = new Map<number, Point>()
  let moved = 0
  const inside = ({ clientX, clientY }: MouseEvent): Point => {
    const { left, top } = frame.getBoundingClientRect()
    return { x: clientX - left, y: clientY - top }
  }
  const spread = () => {
    const [one, other] = [...fingers.values()] as [Point, Point]
    return Math.max(1, Math.hypot(one.x - other.x, one.y - other.y))
  }
  const on = <Name extends keyof SVGElementEventMap>(
    name: Name,
    listener: (event: SVGElementEventMap[Name]) => void,
    options: AddEventListenerOptions = {},
  ) => frame.addEventListener(name, listener, { ...options, signal })
  on(
    "wheel",
    (event) => {
      event.preventDefault()
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1
      place.around(inside(event), Math.exp((-event.deltaY * lines) / 400))
    },
    { passive: false },
  )
  on("pointerdown", (event) => {
    if (event.button !== 0) return
    if (fingers.size === 0) moved = 0
    fingers.set(event.pointerId, inside(event))
  })
  on("pointermove", (event) => {
    const before = fingers.get(event.pointerId)
    if (!before) return
    const now = inside(event)
    const apart = fingers.size === 2 ? spread() : undefined
    fingers.set(event.pointerId, now)
    moved += Math.hypot(now.x - before.x, now.y - before.y)
    if (moved <= still) return
    // This is a drag, not a click. Captured events do not reach the elements under the pointer.
    if (!frame.hasPointerCapture(event.pointerId)) frame.setPointerCapture(event.pointerId)
    place.pan((now.x - before.x) / fingers.size, (now.y - before.y) / fingers.size)
    if (apart !== undefined) place.around(now, spread() / apart)
  })
  for (const name of ["pointerup", "pointercancel"] as const) on(name, (event) => fingers.delete(event.pointerId))
  on(
    "click",
    (event) => {
      if (moved > still) event.stopPropagation()
      moved = 0
    },
    { capture: true },
  )
}
