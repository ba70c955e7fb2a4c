// Stored results of runs in bench/results/, with which a table can be completed on another machine and a row can be repeated.
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { instructionSet } from "../machine.mjs"

/**
 * Result of a run: evaluations as [iteration, success rate], evaluations after the training, and the table's metrics in every iteration with
 * six digits (null if missing).
 */
export function numbersOf(
  { world, variant, seed, metrics },
  { about, instructionSet, settings, reports, failed, finals = [] },
) {
  const evaluated = reports.filter(({ evaluation }) => evaluation)
  const series = (key) => reports.slice(1).map(({ metrics }) => rounded(metrics[key]))
  return {
    world: world.name,
    variant: variant.name,
    seed,
    instructionSet,
    about,
    settings,
    ...(failed && { failed }),
    curve: evaluated.map(({ iteration, evaluation }) => [iteration, evaluation.success]),
    finals,
    metrics: Object.fromEntries(metrics.map((key) => [key, series(key)])),
  }
}

function rounded(value) {
  return value === undefined ? null : Number(value.toPrecision(6))
}

/** Newest stored result of a cell by this kind of processor for which `willDo` returns true. */
export async function keptOf({ world, variant, seed, results }, willDo) {
  if (!results || !existsSync(results)) return undefined
  const names = (await readdir(results)).filter((file) => /-paper-.*\.json$/.test(file)).sort()
  for (const name of names.reverse()) {
    const all = await read(`${results}/${name}`)
    const same = (one) => one.world === world.name && one.variant === variant.name && one.seed === seed
    const kept = all.find((one) => same(one) && one.instructionSet === instructionSet && willDo(one))
    if (kept) return kept
  }
}

const files = new Map()

/** Reads a file once, because every cell requests it. */
function read(path) {
  if (!files.has(path)) files.set(path, readFile(path, "utf8").then(JSON.parse))
  return files.get(path)
}
