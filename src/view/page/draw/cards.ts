import { drawing } from "../element.ts"
import { picture, words } from "./picture.ts"

const rank = "(?:A|[2-9]|10|J|Q|K)"
const hand = `${rank}(?: ${rank}){0,20}`
const formula = new RegExp(`^Cards: (${hand})\nFormula: ([0-9+*/()=-]{0,60})$`)
const blackjack = new RegExp(`^Dealer: (${rank}) \\?\nYou: (${hand})$`)
const numberLine = /^Target: (\d{1,4})\nCurrent: (\d{1,4})$/
/** Maximum length of number lines. Longer lines have too many numbers to be legible. */
const longestLine = 30

/** Drawing of a card game's table or of the number line; undefined for other observations. */
export function drawCards(observation: string): SVGSVGElement | undefined {
  const [, cards, written] = formula.exec(observation) ?? []
  if (cards !== undefined && written !== undefined) return drawFormula(cards.split(" "), written)
  const [, dealer, mine] = blackjack.exec(observation) ?? []
  if (dealer !== undefined && mine !== undefined) return drawBlackjack(dealer, mine.split(" "))
  const [, target, current] = numberLine.exec(observation) ?? []
  if (target === undefined || Math.max(Number(target), Number(current)) > longestLine) return undefined
  return drawLine(Number(target), Number(current))
}

const [wide, high, gap] = [24, 34, 5]

function card(face: string | undefined, x: number, y: number): SVGGElement {
  const shape = { x: x + 0.5, y: y + 0.5, width: wide - 1, height: high - 1, rx: 4 }
  return drawing(
    "g",
    { class: face === undefined ? "card hidden" : "card" },
    drawing("rect", shape),
    words(face ?? "?", x + wide / 2, y + high / 2 + 5, "face"),
  )
}

function rowWidth(cards: number): number {
  return cards * (wide + gap) - gap
}

function drawFormula(cards: readonly string[], written: string): SVGSVGElement {
  const text = written || "…"
  const width = Math.max(rowWidth(cards.length), text.length * 7.5, 60) + 12
  const left = (width - rowWidth(cards.length)) / 2
  return picture(
    `Cards ${cards.join(", ")}; formula ${written || "empty"}`,
    { width, height: high + 32, least: 0.85 },
    ...cards.map((face, at) => card(face, left + at * (wide + gap), 6)),
    words(text, width / 2, high + 23, "formula"),
  )
}

function drawBlackjack(dealer: string, mine: readonly string[]): SVGSVGElement {
  const width = Math.max(rowWidth(2), rowWidth(mine.length)) + 12
  const row = (cards: readonly (string | undefined)[], y: number) =>
    cards.map((face, at) => card(face, (width - rowWidth(cards.length)) / 2 + at * (wide + gap), y))
  return picture(
    `The dealer shows ${dealer}; you have ${mine.join(", ")}`,
    { width, height: 2 * high + 22, least: 0.8 },
    ...row([dealer, undefined], 6),
    drawing("path", { class: "table", d: `M6 ${high + 11}h${width - 12}` }),
    ...row(mine, high + 16),
  )
}

function drawLine(target: number, current: number): SVGSVGElement {
  const last = Math.max(5, target, current)
  const place = (number: number) => 12 + number * 16
  const numbers = Array.from({ length: last + 1 }, (_, number) => number)
  return picture(
    `Number line: at ${current}, target ${target}`,
    { width: place(last) + 12, height: 46, least: 0.8 },
    drawing("path", { class: "table", d: `M${place(0)} 22H${place(last)}` }),
    ...numbers.map((number) => words(String(number), place(number), 41, "tick")),
    drawing("path", { class: "target", d: `M${place(target)} 14l8 8l-8 8l-8 -8z` }),
    drawing("circle", { class: "you", cx: place(current), cy: 22, r: 4.5 }),
  )
}
