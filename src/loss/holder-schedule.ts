import { integer, number } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { Ramp, RampShape } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

const holderScheduleFields = {
  lowest: number(-2, "The least p. The default is the authors'."),
  highest: number(2, "The largest p. The default is the authors'."),
  over: integer(500, "Iterations that it takes. The default is the authors'.", { min: 1 }),
  power: number(2, "The exponent of quad and quad_dec.", { above: 0 }),
}

/** Options of `holderSchedule`. */
export type HolderScheduleOptions = OptionsOf<typeof holderScheduleFields>

/** Upwards; the others are their ways back. */
const shapes = { linear: "linear", sin: "cosine", quad: "power", cubic: "cubic" } as const satisfies Record<
  string,
  RampShape
>
const falling = { linear_dec: "linear", cos: "cosine", quad_dec: "power", cubic_dec: "cubic" } as const

/** Name of a schedule of HölderPO's exponent. */
export type HolderScheduleName = keyof typeof shapes | keyof typeof falling

/**
 * The schedule of HölderPO's p that its authors call so (arXiv 2605.12058), as a ramp: with q the share of the iterations that have
 * passed, at most 1, p goes up by q (linear), (1 - cos πq) / 2 (sin), q^power (quad) or (1 + (2q - 1)³) / 2 (cubic), and the same way
 * down (linear_dec, cos, quad_dec, cubic_dec).
 *
 *     holder({ p: holderSchedule("linear_dec") })
 *
 * @throws GigpoError `BAD_ARGUMENT` for a name that is none, or an option that has no meaning.
 */
export function holderSchedule(name: HolderScheduleName, given: HolderScheduleOptions = {}): Ramp {
  const { lowest, highest, over, power } = readOptions("holderSchedule", given, holderScheduleFields)
  const known: Readonly<Record<string, RampShape>> = { ...shapes, ...falling }
  if (!Object.hasOwn(known, name))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There is no schedule "${String(name)}"; take one of ${Object.keys(known).join(", ")}.`,
    )
  const [from, to] = Object.hasOwn(shapes, name) ? [lowest, highest] : [highest, lowest]
  return { from, to, over, shape: known[name], power }
}
