import { drawing } from "./element.ts"

const colours = 8
/** Dash patterns, [pattern], as lengths of line and gap. One pattern fewer than colours, so that 56 runs are distinct. */
const dashes: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 5], [4, 2, 1, 2]]

/** Colour (of main.css) and dash pattern of a run, by its index. The dash distinguishes runs without colour vision. */
export function runMark(place: number): { readonly colour: string; readonly dash: readonly number[] } {
  return { colour: `run-${place % colours}`, dash: dashes[place % dashes.length]! }
}

/** Sample of a run's line for legends, without text. */
export function runSwatch(place: number): SVGSVGElement {
  return swatch(runMark(place), 2.5)
}

/** Sample of the colour of an area, such as a part of the time. */
export function partSwatch(place: number): SVGSVGElement {
  return swatch({ colour: runMark(place).colour, dash: [] }, 8)
}

function swatch({ colour, dash }: ReturnType<typeof runMark>, width: number): SVGSVGElement {
  return drawing(
    "svg",
    { class: "swatch", viewBox: "0 0 26 8", width: 26, height: 8, "aria-hidden": "true" },
    drawing("line", {
      class: colour,
      x1: 1,
      x2: 25,
      y1: 4,
      y2: 4,
      "stroke-width": width,
      "stroke-dasharray": dash.join(" "),
    }),
  )
}
