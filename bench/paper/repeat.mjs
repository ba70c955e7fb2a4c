// A run once more, held to what is kept of it: every evaluation and every iteration's success must be the same number.
import { readdir, readFile } from "node:fs/promises"
import { instructionSet } from "../machine.mjs"
import { nameOf } from "./cells.mjs"
import { numbersOf } from "./write.mjs"

/** Whether it came out the same; says so. */
export async function compareWithKept(cell, results) {
  if (!cell.result) return false // it was stopped
  const kept = await keptOf(cell, results)
  const again = numbersOf(cell)
  const same = kept && ["curve", "training"].every((key) => JSON.stringify(kept[key]) === JSON.stringify(again[key]))
  const found = !kept
    ? `nothing is kept of it for ${instructionSet} in`
    : same
      ? "the same as in"
      : "NOT the same as in"
  console.log(`${nameOf(cell)}: ${found} ${kept?.about ?? results}`)
  if (kept && !same) console.log(`kept  ${JSON.stringify(kept.curve)}\nfound ${JSON.stringify(again.curve)}`)
  return Boolean(same)
}

async function keptOf({ world, variant, seed }, results) {
  const files = (await readdir(results))
    .filter((file) => /-paper-.*\.json$/.test(file))
    .sort()
    .reverse()
  for (const file of files) {
    const kept = JSON.parse(await readFile(`${results}/${file}`, "utf8")).find(
      (run) => run.world === world.name && run.variant === variant.name && run.seed === seed,
    )
    if (kept?.instructionSet === instructionSet) return kept
  }
}
