import { drawing } from "../element.ts"

/**
 * A drawing with a text in its place for who does not see it.
 *
 * @param least smallest scale at which its words can be read; 0 where it has none
 */
export function picture(
  name: string,
  { width, height, least = 0 }: { readonly width: number; readonly height: number; readonly least?: number },
  ...parts: readonly Node[]
): SVGSVGElement {
  const size = { viewBox: `0 0 ${width} ${height}`, width, height, "data-least": least }
  return drawing("svg", { class: "drawn", role: "img", "aria-label": name, ...size }, ...parts)
}

/** Somebody who stands there, in a square of 10 by 10. */
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
