import { drawing } from "../element.ts"

/**
 * Small line of a development, without text.
 *
 * @param range - values at the lower and upper edge. Default: those of the values
 */
export function spark(values: readonly number[], range?: readonly [number, number]): SVGSVGElement {
  const [least, most] = range ?? [Math.min(...values), Math.max(...values)]
  const points = values.map((value, at) => {
    const x = values.length > 1 ? (100 * at) / (values.length - 1) : 100
    const y = most > least ? 22 - (20 * (value - least)) / (most - least) : 12
    return `${x.toFixed(1)} ${y.toFixed(1)}`
  })
  return drawing(
    "svg",
    { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" },
    points.length > 1 && drawing("path", { d: `M${points.join("L")}` }),
  )
}
