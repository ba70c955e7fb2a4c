import { drawing } from "../element.ts"
import { person, picture, words } from "./picture.ts"
import { readScene, type Scene } from "./scene.ts"

/** Drawing of the visible part of a household: the current place with its objects, carried objects, or the room. */
export function drawHousehold(observation: string, small: boolean): SVGSVGElement | undefined {
  const scene = readScene(observation)
  if (!scene) return undefined
  if (scene.around) return small ? roomStamp(scene.around) : room(scene.around)
  return small ? stamp(scene) : place(scene)
}

function describe({ place, isClosed, things, carried }: Scene): string {
  return [
    place && `At ${place}${isClosed ? ", which is closed" : ""}`,
    things && `there: ${things.join(", ") || "nothing"}`,
    carried && `carried: ${carried.join(", ") || "nothing"}`,
  ]
    .filter(Boolean)
    .join("; ")
}

/** Width of a letter in the font sizes of the style sheet. */
const letter = 6.2
const most = 8

function stamp(scene: Scene): SVGSVGElement {
  const { place, isClosed, things = [], carried = [] } = scene
  const label = place ?? "nowhere"
  const carries = carried[0] ? `+ ${carried[0]}` : ""
  const width = Math.max(84, Math.max(label.length, carries.length) * letter + 30)
  const parts: Node[] = [person(3, 8, 2.4)]
  if (carried.length > 0) parts.push(block(10, 0.5))
  if (place !== undefined) {
    parts.push(
      drawing("rect", { class: isClosed ? "door" : "shelf", x: 32, y: 6, width: width - 38, height: 26, rx: 3 }),
    )
    if (isClosed) parts.push(drawing("path", { class: "knob", d: `M${(width + 26) / 2} 6v26m3 -15v4m-6 0v-4` }))
  }
  for (const at of things.slice(0, most).keys())
    parts.push(block(37 + at * ((width - 48) / Math.max(most, things.length)), 23))
  if (place !== undefined) parts.push(words(label, width / 2, carries ? 44 : 46, "label"))
  if (carries) parts.push(words(carries, width / 2, place ? 57 : 44, "label carried"))
  return picture(describe(scene), { width, height: carries && place ? 62 : 51, least: 0.95 }, ...parts)
}

function block(x: number, y: number): SVGRectElement {
  return drawing("rect", { class: "thing", x, y, width: 7, height: 7, rx: 1.5 })
}

/** Receptacles of the room, as dots. */
function roomStamp(around: readonly string[]): SVGSVGElement {
  const dots = around.slice(0, 24).map((_, at, { length }) => {
    const angle = (2 * Math.PI * at) / length - Math.PI / 2
    return drawing("rect", {
      class: "shelf",
      x: 38 + 30 * Math.cos(angle),
      y: 23 + 17 * Math.sin(angle),
      width: 9,
      height: 7,
      rx: 1.5,
    })
  })
  return picture(
    `The middle of the room; around: ${around.join(", ")}`,
    { width: 85, height: 66, least: 0.95 },
    ...dots,
    person(31, 14, 2.3),
    words(`${around.length} places`, 42.5, 61, "label"),
  )
}

const [largeWidth, line] = [320, 22]

function place(scene: Scene): SVGSVGElement {
  const { place: name, isClosed, things = [], carried = [] } = scene
  const [chips, rows] = wrap(things, 84, largeWidth - 18, 36)
  const high = Math.max(48, 18 + rows * line)
  const parts: Node[] = [person(8, high - 22, 5)]
  for (const [at, thing] of carried.slice(0, 2).entries())
    parts.push(...chip(thing, 6, high - 44 - at * line, "carried"))
  if (name !== undefined) {
    parts.push(
      drawing("rect", {
        class: isClosed ? "door" : "shelf",
        x: 72,
        y: 24,
        width: largeWidth - 80,
        height: high,
        rx: 6,
      }),
    )
    parts.push(words(`${name}${isClosed ? " (closed)" : ""}`, 72 + (largeWidth - 80) / 2, 17, "label"))
  }
  return picture(describe(scene), { width: largeWidth, height: high + 34 }, ...parts, ...chips)
}

function room(around: readonly string[]): SVGSVGElement {
  const [chips, rows] = wrap(around, 14, largeWidth - 14, 14)
  const high = 14 + rows * line
  const frame = drawing("rect", { class: "shelf", x: 4, y: 4, width: largeWidth - 8, height: high + 44, rx: 8 })
  const name = `The middle of the room; around: ${around.join(", ")}`
  return picture(
    name,
    { width: largeWidth, height: high + 52 },
    frame,
    ...chips,
    person(largeWidth / 2 - 19, high + 4, 3.8),
  )
}

/** Chips in rows between left and right, and the number of rows. */
function wrap(things: readonly string[], left: number, right: number, top: number): readonly [Node[], number] {
  const parts: Node[] = []
  let [x, row] = [left, 0]
  for (const thing of things) {
    const width = chipWidth(thing)
    if (x > left && x + width > right) [x, row] = [left, row + 1]
    parts.push(...chip(thing, x, top + row * line))
    x += width + 6
  }
  return [parts, row + 1]
}

function chipWidth(thing: string): number {
  return thing.length * letter + 12
}

function chip(thing: string, x: number, y: number, kind = ""): Node[] {
  const width = chipWidth(thing)
  return [
    drawing("rect", { class: `thing ${kind}`, x, y, width, height: 17, rx: 4 }),
    words(thing, x + width / 2, y + 12.5, "label on"),
  ]
}
