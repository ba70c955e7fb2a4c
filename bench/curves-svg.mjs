// Learning curves as SVG: a thin line per run, and a thick line for the mean over runs.

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

/** Learning curves of many results: one panel each, four per row, with the mean of the first result in grey. */
export function panelsSvg(results) {
  const [panel, plot, columns] = [{ width: 190, height: 130 }, { left: 30, top: 24, width: 152, height: 90 }, 4]
  const xs = results[0].runs[0].map(([x]) => x)
  const [low, high] = range(results.flatMap(({ runs }) => runs.flat().map(([, y]) => y)))
  const panels = results.map(({ name, runs }, index) => {
    const [x0, y0] = [
      (index % columns) * panel.width + plot.left,
      Math.floor(index / columns) * panel.height + plot.top,
    ]
    const px = (x) => x0 + ((x - xs[0]) / (xs.at(-1) - xs[0])) * plot.width
    const py = (y) => y0 + plot.height - ((y - low) / (high - low)) * plot.height
    const line = (points, style) =>
      `<polyline fill="none" ${style} points="${points.map(([x, y]) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`).join(" ")}"/>`
    const label = (x, y, content, more = "") => `<text x="${x}" y="${y}" ${more}>${content}</text>`
    return [
      `<rect x="${x0}" y="${y0}" width="${plot.width}" height="${plot.height}" fill="none" stroke="#ddd"/>`,
      label(x0, y0 - 6, name, 'font-weight="bold"'),
      ...[low, high].map((y) => label(x0 - 4, py(y) + 4, Math.round(100 * y), 'text-anchor="end" fill="#666"')),
      line(mean(results[0].runs), 'stroke="#bbb" stroke-width="2"'),
      ...runs.map((run) => line(run, `stroke="${colours[0]}" stroke-width="1" stroke-opacity="0.35"`)),
      line(mean(runs), `stroke="${colours[0]}" stroke-width="2"`),
    ].join("\n")
  })
  const size = [columns * panel.width, Math.ceil(results.length / columns) * panel.height]
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${size[0]}" height="${size[1]}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="white"/>
${panels.join("\n")}
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
