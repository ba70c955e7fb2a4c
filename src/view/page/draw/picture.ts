import { drawing } from "../element.ts"

/**
 * Drawing with a text alternative for screen readers.
 *
 * @param least - minimum scale at which the words are legible; 0 for a drawing without words
 */
export function picture(
  name: string,
  { width, height, least = 0 }: { readonly width: number; readonly height: number; readonly least?: number },
  ...parts: readonly Node[]
): SVGSVGElement {
  const size = { viewBox: `0 0 ${width} ${height}`, width, height, "data-least": least }
  return drawing("svg", { class: "drawn", role: "img", "aria-label": name, ...size }, ...parts)
}

/** Person, in a square of 10 by 10. */
export function person(x: number, y: number, scale = 1): SVGGElement {
  return drawing(
    "g",
    { class: "you", transform: `translate(${x} ${y}) scale(${scale})` },
    drawing("circle", { cx: 5, cy: 3.2, r: 1.9 }),
    drawing("path", { d: "M1.9 9c0 -4.6 6.2 -4.6 6.2 0z" }),
  )
}

export function words(text: string, x: number, y: number, kind = ""): SVGTextElement {
  return drawing("text", { class: kind, x, y }, text)
}
