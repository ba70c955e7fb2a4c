import { integer, number } from "../options/field.ts"
import { readOptions } from "../options/read.ts"
import type { RampShape, ScheduleRamp } from "../options/schedule.ts"
import type { OptionsOf } from "../options/table.ts"
import { GigpoError } from "../util/errors.ts"

const holderScheduleFields = {
  lowest: number(-2, "Smallest p. The default is the authors'."),
  highest: number(2, "Largest p. The default is the authors'."),
  over: integer(500, "Iterations of the change. The default is the authors'.", { min: 1 }),
  power: number(2, "Exponent of quad and quad_dec.", { above: 0 }),
}

/** Options of `holderSchedule`. */
export type HolderScheduleOptions = OptionsOf<typeof holderScheduleFields>

/** Rising schedules. */
const shapes = { linear: "linear", sin: "cosine", quad: "power", cubic: "cubic" } as const satisfies Record<
  string,
  RampShape
>
/** Falling schedules. */
const falling = { linear_dec: "linear", cos: "cosine", quad_dec: "power", cubic_dec: "cubic" } as const

/** Name of a schedule of HölderPO's exponent p. */
export type HolderScheduleName = keyof typeof shapes | keyof typeof falling

/**
 * Returns a schedule of HölderPO's exponent p by its name in the authors' code (arXiv 2605.12058), as a ramp. With q the completed share of
 * the iterations, at most 1, p rises with q (linear), (1 - cos πq) / 2 (sin), q^power (quad) or (1 + (2q - 1)³) / 2 (cubic), or falls
 * in the same way (linear_dec, cos, quad_dec, cubic_dec).
 *
 *     holder({ p: holderSchedule("linear_dec") })
 *
 * @throws GigpoError `BAD_ARGUMENT` for an unknown name, or an option that the schedule does not have.
 */
export function holderSchedule(name: HolderScheduleName, given: HolderScheduleOptions = {}): ScheduleRamp {
  const { lowest, highest, over, power } = readOptions("holderSchedule", given, holderScheduleFields)
  const known: Readonly<Record<string, RampShape>> = { ...shapes, ...falling }
  if (!Object.hasOwn(known, name))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `There is no schedule "${String(name)}"; use one of ${Object.keys(known).join(", ")}.`,
    )
  const [from, to] = Object.hasOwn(shapes, name) ? [lowest, highest] : [highest, lowest]
  return { from, to, over, shape: known[name], power }
}
