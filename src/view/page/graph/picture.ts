import { type Folded, foldChains } from "../../data/chains.ts"
import type { GraphNode, StateGraph } from "../../data/graph.ts"
import { drawing, element } from "../element.ts"
import { inTurns } from "../in-turns.ts"
import { counted } from "../numbers.ts"
import { actionNames } from "./action-names.ts"
import { type Box, chainBox, endBox, stateBox, titleOf } from "./boxes.ts"
import { clipRoute, loopRoom, loopRoute } from "./geometry.ts"
import { drawLink, labelOf, longestAction, meanAdvantage } from "./links.ts"
import { paint } from "./paint.ts"
import { advantageScale, type Colouring, type Scale, stateValue, toneOf } from "./scale.ts"
import { shortNames } from "./short-names.ts"
import { steer } from "./steer.ts"
import { layOut } from "./worker-layout.ts"
import { type Zoom, zoomable } from "./zoom.ts"

type Link = Folded["links"][number]

/** Minimum width in pixels of frames in which the graph is drawn from left to right. */
const wide = 640
const longestName = 22
const lineWidths = { least: 1.5, most: 8 }

export interface Picture {
  /** Highlights the paths of these episodes and dims the rest; undefined shows everything equally. */
  light(paths: readonly number[] | undefined): void
  colour(colouring: Colouring, scale: Scale): void
  /** Marks the selected node and scrolls it into view. */
  select(node: number | undefined): void
  focus(node: number): void
}

/**
 * Draws the graph into a frame, which must be in the page. Resolves when the drawing is complete, and rejects when `signal` is aborted.
 *
 * @param opened - nodes whose chains are shown as separate boxes
 * @param tell - callbacks for a chosen node, a chain to open, and a node that is pointed at or focused (undefined afterwards)
 */
export async function drawGraph(
  frame: HTMLElement,
  graph: StateGraph,
  opened: ReadonlySet<number>,
  tell: {
    readonly choose: (node: number) => void
    readonly open: (node: number) => void
    readonly point: (node: number | undefined) => void
  },
  signal: AbortSignal,
): Promise<Picture> {
  const { boxes, boxOf, links } = foldChains(graph, opened)
  const names = namesOf(graph.nodes)
  const most = Math.max(2, ...graph.nodes.map((node) => (node.kind === "state" ? node.places.length : 0)))
  const share = (visits: number, of: number) => (of <= 1 ? 0 : Math.sqrt((visits - 1) / (of - 1)))
  const boxFor = (nodes: readonly number[]): Box => {
    const [at] = nodes as readonly [number]
    const node = graph.nodes[at]!
    if (nodes.length > 1) return chainBox(nodes.map((one) => graph.nodes[one]!))
    return node.kind === "end" ? endBox(node, names[at]!) : stateBox(node, names[at]!, share(node.places.length, most))
  }
  const drawn: Box[] = []
  await inTurns(
    boxes.map((nodes) => () => drawn.push(boxFor(nodes))),
    signal,
  )
  signal.throwIfAborted()
  const actions = actionNames(graph.edges, longestAction)
  const labels = links.map(({ edges }) => labelOf(edges, graph, actions))
  const counts = links.map(({ edges }) => edges.reduce((sum, edge) => sum + graph.edges[edge]!.places.length, 0))
  const isTall = frame.clientWidth < wide
  const { placed, centres, routeOf } = await arrange({ drawn, links, labels, counts, isTall }, signal)
  const mostTaken = Math.max(2, ...counts)
  const worth = advantageScale(graph)
  const arrowFor = ({ edges }: Link, at: number) => {
    const width = lineWidths.least + (lineWidths.most - lineWidths.least) * share(counts[at]!, mostTaken)
    const arrow = drawLink(labels[at]!, routeOf(at), width)
    paint(arrow, toneOf(meanAdvantage(edges.map((edge) => graph.edges[edge]!)), worth))
    arrow.dataset.edges = edges.join(" ")
    return arrow
  }
  const layers = [drawing("g"), drawing("g")] as const
  const world = drawing("g", {}, ...layers)
  const svg = drawing("svg", { role: "group", tabindex: 0, "aria-label": labelFor(graph) }, world)
  // Built in pieces while hidden, so that the page stays responsive. The previous drawing stays visible until then.
  svg.style.visibility = "hidden"
  frame.append(svg)
  const arrows: SVGGElement[] = []
  const drawArrows = links.map((link, at) => () => {
    arrows.push(arrowFor(link, at))
    layers[0].append(arrows[at]!)
  })
  const drawBoxes = drawn.map(({ element: box }, at) => () => {
    box.setAttribute("transform", `translate(${centres[at]!.x} ${centres[at]!.y})`)
    box.dataset.nodes = boxes[at]!.join(" ")
    layers[1].append(box)
  })
  await inTurns([...drawArrows, ...drawBoxes], signal)
  if (signal.aborted) svg.remove()
  signal.throwIfAborted()
  for (const other of [...frame.children]) if (other !== svg) other.remove()
  svg.style.removeProperty("visibility")
  const zoom = zoomable(svg, world, placed, centres[0] ?? { x: 0, y: 0 }, signal)
  zoom.begin()
  const chosen = (box: number) => {
    const nodes = boxes[box]!
    if (nodes.length > 1) tell.open(nodes[0]!)
    else tell.choose(nodes[0]!)
  }
  steer({ svg, zoom, boxes: drawn.map((box) => box.element), centres, chosen }, signal)
  for (const [box, { element: made }] of drawn.entries()) {
    const point = () => tell.point(boxes[box]!.length > 1 ? undefined : boxes[box]![0])
    made.addEventListener("click", () => chosen(box), { signal })
    for (const name of ["pointerenter", "focus"]) made.addEventListener(name, point, { signal })
    for (const name of ["pointerleave", "blur"]) made.addEventListener(name, () => tell.point(undefined), { signal })
  }
  frame.append(zoomControls(zoom))
  return pictureOf({ svg, graph, drawn, boxes, boxOf, links, arrows, reveal: (box) => zoom.reveal(centres[box]!) })
}

function labelFor({ nodes, edges, paths }: StateGraph): string {
  const states = counted(nodes.filter(({ kind }) => kind === "state").length, "state")
  const content = `${states} and ${counted(edges.length, "action")} of ${counted(paths.length, "path")}`
  return `${content}. Arrow keys move the picture, plus and minus zoom, 0 fits it; Tab leads to the states.`
}

/** Elements of a complete drawing. */
interface Drawn extends Pick<ReturnType<typeof foldChains>, "boxes" | "boxOf" | "links"> {
  readonly svg: SVGSVGElement
  readonly graph: StateGraph
  /** Per box. */
  readonly drawn: readonly Box[]
  /** Per link. */
  readonly arrows: readonly SVGGElement[]
  /** Scrolls a box into view. */
  reveal(box: number): void
}

function pictureOf({ svg, graph, drawn, boxes, boxOf, links, arrows, reveal }: Drawn): Picture {
  return {
    light(paths) {
      svg.classList.toggle("lit", paths !== undefined)
      const lit = (paths ?? []).map((path) => graph.paths[path]!)
      const [nodes, edges] = [new Set(lit.flatMap((path) => path.nodes)), new Set(lit.flatMap((path) => path.edges))]
      for (const [at, { element: box }] of drawn.entries())
        box.classList.toggle(
          "on",
          boxes[at]!.some((node) => nodes.has(node)),
        )
      for (const [at, arrow] of arrows.entries())
        arrow.classList.toggle(
          "on",
          links[at]!.edges.some((edge) => edges.has(edge)),
        )
    },
    colour(colouring, scale) {
      svg.classList.toggle("one-sided", colouring !== "return")
      for (const [at, nodes] of boxes.entries()) {
        const node = graph.nodes[nodes[0]!]!
        if (nodes.length === 1 && node.kind === "state")
          paint(drawn[at]!.element, toneOf(stateValue(node, colouring), scale))
      }
    },
    select(node) {
      for (const [at, { element: box }] of drawn.entries())
        box.classList.toggle("selected", node !== undefined && boxOf[node] === at)
      if (node !== undefined) reveal(boxOf[node]!)
    },
    focus: (node) => drawn[boxOf[node]!]!.element.focus({ preventScroll: true }),
  }
}

interface Parts {
  readonly drawn: readonly Box[]
  readonly links: readonly Link[]
  /** Per link. */
  readonly labels: readonly ReturnType<typeof labelOf>[]
  readonly counts: readonly number[]
  readonly isTall: boolean
}

/** Places the boxes and routes the links. A box with a loop gets room for it. */
async function arrange({ drawn, links, labels, counts, isTall }: Parts, signal: AbortSignal) {
  const loops = new Map(links.flatMap(({ from, to }, at) => (from === to ? [[from, at] as const] : [])))
  const rooms = drawn.map((_, box) => (loops.has(box) ? loopRoom(labels[loops.get(box)!]!, isTall) : 0))
  const between = links.flatMap(({ from, to }, at) => (from === to ? [] : [{ from, to, at }]))
  const placed = await layOut(
    {
      boxes: drawn.map(({ width, height }, box) =>
        isTall ? { width: width + rooms[box]!, height } : { width, height: height + rooms[box]! },
      ),
      links: between.map(({ from, to, at }) => ({ from, to, ...sizeOf(labels[at]!), weight: counts[at]! })),
      isTall,
    },
    signal,
  )
  const centres = placed.boxes.map(({ x, y }, box) =>
    isTall ? { x: x - rooms[box]! / 2, y } : { x, y: y + rooms[box]! / 2 },
  )
  const routes = new Map(between.map(({ at }, link) => [at, placed.links[link]!]))
  const routeOf = (at: number) => {
    const { from, to } = links[at]!
    const [start, end] = [drawn[from]!.frame, drawn[to]!.frame]
    if (from === to) return loopRoute(start, centres[from]!, labels[at]!, isTall)
    return clipRoute(routes.get(at)!, start, centres[from]!, end, centres[to]!)
  }
  return { placed, centres, routeOf }
}

/** Buttons that zoom and fit the picture. */
function zoomControls(zoom: Zoom): HTMLElement {
  const control = (words: string, name: string, act: () => void) =>
    element("button", { type: "button", "aria-label": name, title: name, click: act }, words)
  return element(
    "div",
    { class: "zoom", role: "group", "aria-label": "Zoom" },
    control("+", "Zoom in", () => zoom.by(1.3)),
    control("−", "Zoom out", () => zoom.by(1 / 1.3)),
    control("⤢", "Fit", () => zoom.fit()),
  )
}

/** Names of nodes in the picture. Names of states, and names of ends, are distinct among themselves. */
export function namesOf(nodes: readonly GraphNode[]): string[] {
  const names = (["state", "end"] as const).map((kind) => {
    const texts = nodes.flatMap((node) => (node.kind === kind && node.observation ? [node.observation] : []))
    return [kind, shortNames(texts, longestName)] as const
  })
  const left = new Map(names)
  return nodes.map((node) => (node.observation && left.get(node.kind)!.shift()) || titleOf(node))
}

function sizeOf({ width, height }: { readonly width: number; readonly height: number }) {
  return { width, height }
}
