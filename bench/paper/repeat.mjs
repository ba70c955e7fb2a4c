// Comparison of a repeated run with its stored result: all evaluations and all metrics of all iterations must be equal.
import { instructionSet } from "../machine.mjs"
import { nameOf } from "./cells.mjs"
import { keptOf } from "./kept.mjs"

/**
 * Compares a repeated run with its stored result and prints the outcome. Returns whether they are equal.
 *
 * @param again result of the repetition; undefined if it was stopped
 */
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

/** Metrics that are compared: all except times, which always differ. */
const compared = ({ metrics }) => Object.keys(metrics).filter((key) => !key.startsWith("time/"))
const equal = (a, b) => JSON.stringify(a) === JSON.stringify(b)
