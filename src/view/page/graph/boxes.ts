import type { EndNode, GraphNode, StateNode } from "../../data/graph.ts"
import { drawState } from "../draw/draw.ts"
import { drawing } from "../element.ts"
import { counted, hundredths, short } from "../numbers.ts"
import type { Frame } from "./geometry.ts"

/** Box of a node, centred at the origin, with its size. */
export interface Box {
  readonly element: SVGGElement
  readonly width: number
  readonly height: number
  /** Frame at which arrows begin and end. */
  readonly frame: Frame
  /** Text alternative of the drawing in the box. */
  readonly alternative?: string
}

const caption = 16
/** Width of a letter in the font size of the style sheet. */
export const letter = 7.25
const marks = { success: "✓", failure: "✕", ended: "■", failed: "!" } as const

/** Title of a node, with the number of its step group in the files. */
export function titleOf(node: GraphNode): string {
  return node.kind === "state" ? `State ${node.stepGroup}` : `End: ${node.ending}`
}

/** Box of a state. `share` determines its size, from 0 (one visit) to 1 (most visits). */
export function stateBox(node: StateNode, name: string, share: number): Box {
  const side = 58 + 46 * share
  const box = tile(node.observation, name, side, short(hundredths(node.mean)))
  const visits = node.places.length
  if (visits > 1) box.element.append(badge(`×${visits}`, box, "visits"))
  box.element.classList.toggle("shared", node.episodes > 1)
  if (node.starts > 0) {
    const [x, y] = [-box.width / 2 - 16, -caption / 2]
    box.element.append(drawing("path", { class: "entry", d: `M${x} ${y - 8}l11 8l-11 8z` }))
  }
  named(box, "state", `${titleOf(node)}: ${box.alternative ?? name}`, [
    counted(visits, "visit"),
    `by ${counted(node.episodes, "episode")}`,
    `mean return ${short(hundredths(node.mean))}`,
  ])
  return box
}

export function endBox(node: EndNode, name: string): Box {
  const words = `${node.ending} ×${node.members.length}`
  const box = node.observation === undefined ? plainTile(name, 56, words) : tile(node.observation, name, 70, words)
  box.element.append(badge(marks[node.ending], box, "mark"))
  box.element.classList.add("end", node.ending)
  named(box, "end", titleOf(node), [
    counted(node.members.length, "episode"),
    `mean return ${short(hundredths(node.mean))}`,
  ])
  return box
}

/** Box for a sequence of states that only one episode visited. */
export function chainBox(nodes: readonly GraphNode[]): Box {
  const words = counted(nodes.length, "step")
  const [width, height] = [words.length * letter + 26, 30]
  const element = drawing(
    "g",
    { class: "chain" },
    ...[6, 3, 0].map((shift) =>
      drawing("rect", {
        class: "frame",
        x: -width / 2 + shift,
        y: -height / 2 - shift,
        width: width - 6,
        height,
        rx: 9,
      }),
    ),
    drawing("text", { class: "name", x: -3, y: 4 }, words),
  )
  const frame = { x: -width / 2, y: -height / 2, width: width - 6, height }
  const box = { element, width, height: height + 6, frame }
  named(box, "chain", `${words} of one episode only`, ["expands when activated"])
  return box
}

function tile(observation: string, name: string, side: number, words: string): Box {
  const drawn = drawState(observation, { small: true })
  if (!drawn) return plainTile(name, side, words)
  const { width: wide, height: high } = drawn.viewBox.baseVal
  const scale = Math.max(side / Math.max(wide, high), Number(drawn.dataset.least))
  const [width, height] = [wide * scale, high * scale]
  for (const [key, value] of Object.entries({ x: -width / 2, y: -(height + caption) / 2, width, height }))
    drawn.setAttribute(key, String(value))
  const alternative = drawn.getAttribute("aria-label")!
  return { ...framed([drawn], width, height, words, 5), alternative }
}

/** Tile with the name in lines of similar length. */
function plainTile(name: string, side: number, words: string): Box {
  const perLine = Math.max(7, Math.ceil(Math.sqrt(name.length * 3)))
  const lines = linesOf(name, perLine)
  const width = Math.max(side, Math.max(...lines.map((line) => line.length)) * letter + 10)
  const height = Math.max(side * 0.72, lines.length * 13 + 10)
  const text = lines.map((line, at) =>
    drawing("text", { class: "name", x: 0, y: (at - (lines.length - 1) / 2) * 13 + 4 - caption / 2 }, line),
  )
  return framed(text, width, height, words, 3)
}

function framed(content: readonly Node[], width: number, height: number, words: string, border: number): Box {
  const rect = (more: number) => ({
    x: -width / 2 - more,
    y: -(height + caption) / 2 - more,
    width: width + 2 * more,
    height: height + 2 * more,
    rx: 4 + more,
  })
  const element = drawing(
    "g",
    {},
    drawing("rect", { class: "ring", ...rect(border + 3) }),
    drawing("rect", { class: "frame", ...rect(border) }),
    drawing("rect", { class: "ground", ...rect(0) }),
    ...content,
    drawing("text", { class: "words", x: 0, y: (height - caption) / 2 + border + 3 }, words),
  )
  const wide = Math.max(width + 2 * border, words.length * 6)
  return { element, width: wide, height: height + caption + 2 * border, frame: rect(border) }
}

function badge(words: string, { width, height }: Box, kind: string): SVGGElement {
  const wide = Math.max(18, words.length * letter + 8)
  return drawing(
    "g",
    { class: `badge ${kind}`, transform: `translate(${width / 2 - 4} ${-height / 2 + 2})` },
    drawing("rect", { x: -wide / 2, y: -9, width: wide, height: 18, rx: 9 }),
    drawing("text", { x: 0, y: 4 }, words),
  )
}

function named({ element }: Box, kind: string, name: string, words: readonly string[]): void {
  element.classList.add("node", kind)
  element.setAttribute("role", "button")
  element.setAttribute("tabindex", "-1")
  const texts = [...element.querySelectorAll("text")]
  for (const text of texts) text.append(" ") // separates the texts for screen readers
  // The accessible name contains the visible text, so that speech input can refer to it.
  const seen = texts.map((text) => text.textContent.trim()).join(" ")
  element.setAttribute("aria-label", `${name}. ${words.join(", ")}. Label: ${seen}`)
}

function linesOf(text: string, perLine: number): string[] {
  const lines: string[] = [""]
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!
    if (line && line.length + word.length >= perLine) lines.push(word)
    else lines[lines.length - 1] = line ? `${line} ${word}` : word
  }
  return lines.slice(0, 3)
}
