/** Where a run stands when a number is asked for. */
export interface TrainingProgress {
  /** Iterations completed before this one. */
  readonly iteration: number
  /** Iterations of the whole run. */
  readonly iterations: number
}

/** A number that changes over a run: from one to another, or, in code, any function. */
export type Schedule = ((moment: TrainingProgress) => number) | Ramp

/** Change of a number from one value to another over iterations. */
export interface Ramp {
  readonly from: number
  readonly to: number
  /** Iterations that it takes. Default: all that are left after `after`. */
  readonly over?: number | undefined
  /** Iterations before it begins. Default 0. */
  readonly after?: number | undefined
  /** Default "linear". */
  readonly shape?: RampShape | undefined
  /** The exponent of the shape "power". Default 2. */
  readonly power?: number | undefined
}

/** The share of the way that a ramp has come after a share q of its time. */
const shapes = {
  linear: (q: number) => q,
  /** Begins and ends gently. */
  cosine: (q: number) => (1 - Math.cos(Math.PI * q)) / 2,
  /** q^power: begins gently where power is above 1. */
  power: (q: number, power: number) => q ** power,
  /** Rests in the middle. */
  cubic: (q: number) => (1 + (2 * q - 1) ** 3) / 2,
}

/** Shape of a ramp. */
export type RampShape = keyof typeof shapes
export const rampShapes = Object.keys(shapes) as readonly RampShape[]

/** Number, or a schedule of it. */
export type Scheduled = number | Schedule

/** The number at this moment. */
export function scheduleValue(value: Scheduled, moment: TrainingProgress): number {
  if (typeof value === "number") return value
  if (typeof value === "function") return value(moment)
  const { from, to, after = 0, shape = "linear", power = 2 } = value
  const { over = Math.max(moment.iterations - after, 1) } = value
  const share = Math.min(Math.max((moment.iteration - after) / over, 0), 1)
  return from + (to - from) * shapes[shape](share, power)
}

/** Options whose schedules have come to numbers. */
export type AtMoment<T> = { readonly [Key in keyof T]: T[Key] extends Scheduled ? number : T[Key] }

/** Every number of a group of options at this moment; what is no schedule stays. */
export function scheduleValues<T extends object>(options: T, moment: TrainingProgress): AtMoment<T> {
  const numbers = Object.entries(options).map(([key, value]) => [
    key,
    isSchedule(value) ? scheduleValue(value, moment) : value,
  ])
  return Object.fromEntries(numbers)
}

function isSchedule(value: unknown): value is Schedule {
  return (
    typeof value === "function" || (typeof value === "object" && value !== null && "from" in value && "to" in value)
  )
}
