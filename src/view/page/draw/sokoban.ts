import { drawing } from "../element.ts"
import { person, picture } from "./picture.ts"

/** Symbols of a room, as the environment writes it: wall, floor, target, box on a target, box, player, player on a target. */
const row = /^[#_O√XPS](?: ?[#_O√XPS])*$/u
/** Maximum side length of rooms that are drawn. */
const longestSide = 60
const cell = 10

/** Drawing of a room from above; `small` omits walls behind walls. */
export function drawSokoban(observation: string, small: boolean): SVGSVGElement | undefined {
  const rows = observation.trim().split("\n")
  if (rows.length < 3 || rows.length > longestSide || !rows.every((line) => row.test(line.trim()))) return undefined
  const cells = rows.map((line) => [...line.replaceAll(/\s/g, "")])
  const width = cells[0]!.length
  if (width < 3 || width > longestSide || cells.some((line) => line.length !== width)) return undefined
  const at = (symbols: string) =>
    cells.flatMap((line, y) => line.flatMap((symbol, x) => (symbols.includes(symbol) ? [{ x, y }] : [])))
  const players = at("PS")
  if (players.length !== 1) return undefined
  const each = (symbols: string, path: (x: number, y: number) => string) =>
    at(symbols)
      .map(({ x, y }) => path(x * cell, y * cell))
      .join("")
  const square = (inset: number) => (x: number, y: number) =>
    `M${x + inset} ${y + inset}h${cell - 2 * inset}v${cell - 2 * inset}h${2 * inset - cell}z`
  const [{ x, y }] = players as [{ x: number; y: number }]
  const [boxes, done, open] = [at("X").length, at("√").length, at("OS").length]
  const drawn = picture(
    `Sokoban, ${width} by ${cells.length}: you in row ${y + 1}, column ${x + 1}; ${boxes} to push, ${done} on target, ${open} targets free`,
    { width: width * cell, height: cells.length * cell },
    drawing("path", { class: "floor", d: each("_OPSX√", square(-0.05)) }),
    drawing("path", { class: "wall", d: each("#", square(-0.05)) }),
    drawing("path", {
      class: "target",
      d: each("OS√", (left, top) => `M${left + 5} ${top + 1.8}l3.2 3.2l-3.2 3.2l-3.2 -3.2z`),
    }),
    drawing("path", { class: "box", d: each("X√", square(1.4)) }),
    drawing("path", {
      class: "slats",
      d: each("X", (left, top) => `M${left + 2.6} ${top + 2.6}l4.8 4.8m0 -4.8l-4.8 4.8`),
    }),
    drawing("path", { class: "slats", d: each("√", (left, top) => `M${left + 2.8} ${top + 5.2}l1.7 1.7l3 -3.6`) }),
    person(x * cell, y * cell),
  )
  if (small) crop(drawn, at("_OPSX√"))
  return drawn
}

/** Crops the drawing to the cells in `inside`, with a margin of the surrounding walls. */
function crop(drawn: SVGSVGElement, inside: readonly { readonly x: number; readonly y: number }[]): void {
  const rim = 0.3
  const side = (places: readonly number[]) => [
    (Math.min(...places) - rim) * cell,
    (Math.max(...places) - Math.min(...places) + 1 + 2 * rim) * cell,
  ]
  const [left, width] = side(inside.map(({ x }) => x))
  const [top, height] = side(inside.map(({ y }) => y))
  drawn.setAttribute("viewBox", `${left} ${top} ${width} ${height}`)
}
