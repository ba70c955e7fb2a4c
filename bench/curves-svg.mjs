// Learning curves as an SVG: every run as a thin line, the mean over runs as a thick one.

const colours = ["#1f6feb", "#d1570a", "#2da44e", "#8250df"]
const [width, height, left, right, top, bottom] = [720, 400, 56, 16, 16, 44]

/** results: [{ name, runs: [[x, share 0…1], …][] }]; all runs share their x values. */
export function curvesSvg(results, labels) {
  const xs = results[0].runs[0].map(([x]) => x)
  const [low, high] = range(results.flatMap(({ runs }) => runs.flat().map(([, y]) => y)))
  const px = (x) => left + ((x - xs[0]) / (xs.at(-1) - xs[0])) * (width - left - right)
  const py = (y) => height - bottom - ((y - low) / (high - low)) * (height - top - bottom)
  const line = (points, style) =>
    `<polyline fill="none" ${style} points="${points.map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(" ")}"/>`
  const text = (x, y, content, more = "") => `<text x="${x}" y="${y}" ${more}>${content}</text>`

  const grid = steps(low, high, 0.1).map(
    (y) =>
      `<line x1="${left}" x2="${width - right}" y1="${py(y)}" y2="${py(y)}" stroke="#ddd"/>` +
      text(left - 8, py(y) + 4, `${Math.round(100 * y)} %`, 'text-anchor="end"'),
  )
  const ticks = xs.map((x) => text(px(x), height - bottom + 18, x, 'text-anchor="middle"'))
  const lines = results.flatMap(({ runs }, index) => [
    ...runs.map((run) => line(run, `stroke="${colours[index]}" stroke-width="1" stroke-opacity="0.35"`)),
    line(mean(runs), `stroke="${colours[index]}" stroke-width="3"`),
  ])
  const legend = results.map(({ name }, index) =>
    text(left + 16, top + 18 + 20 * index, name, `fill="${colours[index]}" font-weight="bold"`),
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="13">
<rect width="100%" height="100%" fill="white"/>
${[...grid, ...ticks, ...lines, ...legend].join("\n")}
${text((left + width - right) / 2, height - 8, labels.x, 'text-anchor="middle"')}
${text(16, (top + height - bottom) / 2, labels.y, `text-anchor="middle" transform="rotate(-90 16 ${(top + height - bottom) / 2})"`)}
</svg>
`
}

function mean(runs) {
  return runs[0].map(([x], index) => [x, runs.reduce((sum, run) => sum + run[index][1], 0) / runs.length])
}

function range(values) {
  return [Math.floor(Math.min(...values) * 10) / 10, Math.ceil(Math.max(...values) * 10) / 10]
}

function steps(low, high, size) {
  return Array.from({ length: Math.round((high - low) / size) + 1 }, (_, index) => low + index * size)
}
