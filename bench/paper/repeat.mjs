// A run once more, held to what is kept of it: every evaluation and every iteration's metrics must be the same numbers.
import { instructionSet } from "../machine.mjs"
import { nameOf } from "./cells.mjs"
import { keptOf } from "./kept.mjs"

/** Whether it came out the same; says so. @param again what it has come to now; nothing where it was stopped */
export async function compareWithKept(cell, again) {
  if (!again) return false
  const kept = await keptOf(cell, () => true)
  const differing = kept && compared(kept).filter((key) => !equal(kept.metrics[key], again.metrics[key]))
  const shares = ({ curve, finals }) => ({ curve, finals })
  const same = kept && equal(shares(kept), shares(again)) && differing.length === 0
  const found = !kept
    ? `nothing is kept of it for ${instructionSet} in`
    : same
      ? "the same as in"
      : "NOT the same as in"
  console.log(`${nameOf(cell)}: ${found} ${kept?.about ?? cell.results}`)
  if (kept && !same) {
    console.log(`kept  ${JSON.stringify(shares(kept))}\nfound ${JSON.stringify(shares(again))}`)
    if (differing.length > 0) console.log(`other numbers in ${differing.join(", ")}`)
  }
  return Boolean(same)
}

/** Seconds are never the same twice. */
const compared = ({ metrics }) => Object.keys(metrics).filter((key) => !key.startsWith("time/"))
const equal = (a, b) => JSON.stringify(a) === JSON.stringify(b)
