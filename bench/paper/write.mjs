// Writes the results of a table: a page with a table per world and curves, and a file with the numbers.
import { mkdir, readdir, rm, writeFile } from "node:fs/promises"
import { pairedInterval, tInterval } from "../../modules/entries/evaluation.js"
import { curvesSvg, panelsSvg } from "../curves-svg.mjs"
import { markdownTable, stamp } from "../machine.mjs"

/**
 * Writes the page of a table and removes older pages.
 *
 * @param cells at least one, each with its `result` (bench/paper/kept.mjs)
 * @returns tables as Markdown
 */
export async function writeTable(name, table, cells, folder) {
  await mkdir(folder, { recursive: true })
  const older = (await readdir(folder)).filter((file) => new RegExp(`^[\\d-]+-paper-${name}\\b(?!-)`).test(file))
  await Promise.all(older.map((file) => rm(`${folder}/${file}`)))
  const title = `${stamp}-paper-${name}`
  const worlds = table.worlds.map((world) => ({ world, own: cells.filter((cell) => cell.world === world) }))
  const sections = []
  for (const { world, own } of worlds.filter(({ own }) => own.length > 0)) {
    const picture = `${title}.${world.name}.svg`
    const curves = own.some(({ result }) => !result.failed) ? [`![curves](./${picture})`] : []
    if (curves.length > 0) await writeFile(`${folder}/${picture}`, curvesOf(table, own))
    sections.push([`## ${world.name}`, gridOf(table, own), ...dynamicsOf(table, own), ...curves].join("\n\n"))
  }
  const machines = [...new Set(cells.map(({ result }) => result.about.replace(/, load .*/, "")))]
  const page = [`# ${table.title}`, explanation(table), machines.join("  \n"), ...summaryOf(table, worlds), ...sections]
  await writeFile(`${folder}/${title}.md`, `${page.join("\n\n")}\n`)
  await writeFile(`${folder}/${title}.json`, `[\n${cells.map(({ result }) => JSON.stringify(result)).join(",\n")}\n]\n`)
  return sections.join("\n\n")
}

function explanation({
  text,
  against,
  finals,
  columns = {},
  again = "`npm run bench:paper -- --repeat '<world>/<row>'`",
}) {
  return [
    ...(text ? [text, ""] : []),
    "Success on held-out tasks in percent, with the 95 % interval of the mean over seeds (Student's t). Runs of a seed begin with the same",
    "model after SFT and play the same tasks, so differences are paired by seed. The curve's mean is over all evaluations, including that",
    "before training.",
    ...(finals ? [`“Trained” is measured by ${finals} further evaluations of the trained model.`] : []),
    ...(against ? [`Differences are to “${against}”.`] : []),
    ...(Object.keys(columns).length > 0
      ? [`${Object.keys(columns).join(", ")}: means over the last five iterations.`]
      : []),
    `To repeat a row: ${again}.`,
  ].join("\n")
}

/** Summary of the comparison of the first variant with the rival in several worlds, with one row per world. */
function summaryOf({ variants, against }, worlds) {
  const rival = variants.find(({ name }) => name === against)
  const one = variants.find((variant) => variant !== rival)
  if (!rival || !one || worlds.length < 2) return []
  const rows = worlds.flatMap(({ world, own }) => {
    const seedsOf = (wanted) => own.filter(({ variant }) => variant === wanted).map(({ seed }) => seed)
    const both = seedsOf(one).filter((seed) => seedsOf(rival).includes(seed))
    const paired = own.filter(({ seed }) => both.includes(seed))
    const [ours, theirs] = [one, rival].map((wanted) => paired.filter(({ variant }) => variant === wanted))
    if (both.length === 0) return []
    const shares = [ours.map(firstOf), ours.map(lastOf), theirs.map(lastOf)].map((all) => percent(mean(all)))
    const differences = [lastOf, wholeOf].map((measure) => difference(ours, paired, against, measure))
    return [[world.name, both.length, ...shares, ...differences]]
  })
  return [markdownTable([["", "seeds", "cloned", one.name, against, "difference", "over the curve"], ...rows])]
}

function gridOf(table, cells) {
  const columns = Object.entries(table.columns ?? {})
  const totals = Object.entries(table.totals ?? {})
  const of = (variant) => cells.filter((cell) => cell.variant === variant && !cell.result.failed)
  const variants = table.variants.filter((variant) => of(variant).length > 0)
  const compared = table.against ? ["difference", "over the curve"] : []
  const gained = table.gains ? ["gained"] : []
  const titles = [...columns, ...totals].map(([title]) => title)
  const header = ["", "seeds", "cloned", "trained", "curve's mean", ...gained, ...compared, ...titles]
  const rows = variants.map((variant) => [
    variant.name,
    of(variant).length,
    ...[firstOf, lastOf, wholeOf].map((measure) => interval(tInterval(of(variant).map(measure)))),
    ...(table.gains ? [gainOf(of(variant))] : []),
    ...(table.against
      ? [lastOf, wholeOf].map((measure) => difference(of(variant), cells, table.against, measure))
      : []),
    ...columns.map(([, key]) => late(of(variant), key)),
    ...totals.map(([, keys]) => totalOf(of(variant), keys)),
  ])
  return [markdownTable([header, ...rows]), ...failuresOf(cells)].join("\n\n")
}

/** Gain of success by training. Marks variants without a gain. */
function gainOf(cells) {
  const gained = cells.map((cell) => lastOf(cell) - firstOf(cell))
  return `${interval(tInterval(gained), signed)}${mean(gained) > 0 ? "" : ", **did not learn**"}`
}

/** Sum over iterations of the product of metrics, as a mean over runs. */
function totalOf(cells, keys) {
  const product = (metrics, at) => keys.reduce((all, key) => all * (metrics[key][at] ?? 0), 1)
  const sum = ({ result: { metrics } }) => metrics[keys[0]].reduce((all, _, at) => all + product(metrics, at), 0)
  return Math.round(mean(cells.map(sum))).toLocaleString("en")
}

/** Table of failed runs with their errors. */
function failuresOf(cells) {
  const failed = cells.filter(({ result }) => result.failed)
  const rows = failed.map(({ variant, seed, result }) => [
    variant.name,
    seed,
    result.curve.at(-1)?.[0] ?? 0,
    result.failed,
  ])
  return rows.length === 0 ? [] : [markdownTable([["failed", "seed", "last evaluated after", "why"], ...rows])]
}

/** Course of metrics in training: means over each fifth of the iterations and all runs of a variant. */
function dynamicsOf({ variants, dynamics = {} }, cells) {
  return Object.entries(dynamics).map(([title, key]) => {
    const rows = variants.flatMap(({ name }) => {
      const series = cells.flatMap(({ variant, result }) => (variant.name === name ? [result.metrics[key] ?? []] : []))
      const fifths = [0, 1, 2, 3, 4].map((fifth) =>
        series.flatMap((one) => one.slice((fifth * one.length) / 5, ((fifth + 1) * one.length) / 5).filter(isNumber)),
      )
      return fifths.every((values) => values.length > 0)
        ? [[name, ...fifths.map((values) => mean(values).toPrecision(3))]]
        : []
    })
    return markdownTable([[title, "first fifth", "second", "third", "fourth", "last"], ...rows])
  })
}

function difference(own, cells, against, measure) {
  const other = (seed) => cells.find(({ variant, seed: its }) => variant.name === against && its === seed)
  const pairs = own.flatMap((cell) => (other(cell.seed) ? [[measure(cell), measure(other(cell.seed))]] : []))
  if (pairs.length === 0 || own[0].variant.name === against) return ""
  const [a, b] = [pairs.map(([one]) => one), pairs.map(([, two]) => two)]
  return interval(pairedInterval(a, b), signed)
}

const isNumber = (value) => value !== null
const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length
const firstOf = (cell) => cell.result.curve[0][1]
const lastOf = ({ result: { curve, finals } }) => (finals.length > 0 ? mean(finals) : curve.at(-1)[1])
/** Mean over the curve, which measures the speed of learning with less noise than the last point. */
const wholeOf = (cell) => mean(cell.result.curve.map(([, share]) => share))

/** Mean of a metric over the last five iterations of all runs. */
function late(cells, key) {
  const values = cells.flatMap(({ result }) => result.metrics[key]?.slice(-5).filter(isNumber) ?? [])
  return values.length === 0 ? "" : mean(values).toPrecision(3)
}

const percent = (share) => (100 * share).toFixed(1)
const signed = (share) => `${share > 0 ? "+" : ""}${percent(share)}`

function interval({ mean, low, high, count }, format = percent) {
  return count < 2 ? format(mean) : `${format(mean)} (${format(low)} to ${format(high)})`
}

function curvesOf({ variants }, cells) {
  const results = variants.flatMap((variant) => {
    const runs = cells
      .filter((cell) => cell.variant === variant && !cell.result.failed)
      .map(({ result }) => result.curve)
    return runs.length === 0 ? [] : [{ name: variant.name, runs }]
  })
  return results.length > 4
    ? panelsSvg(results)
    : curvesSvg(results, { x: "iteration", y: "success on held-out tasks" })
}
