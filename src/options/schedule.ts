/** Progress of a run, as a schedule receives it. */
export interface TrainingProgress {
  /** Iterations completed before this one. */
  readonly iteration: number
  /** Iterations of the whole run. */
  readonly iterations: number
}

/** Value of an option as a function of training progress: a ramp, or, in programs, any function. */
export type Schedule = ((progress: TrainingProgress) => number) | ScheduleRamp

/** Change of a number from one value to another over iterations. */
export interface ScheduleRamp {
  /** First value. */
  readonly from: number
  /** Last value. */
  readonly to: number
  /** Iterations from the first value to the last. Default: all that remain after `after`. */
  readonly over?: number | undefined
  /** Iterations before the change begins. Default 0. */
  readonly after?: number | undefined
  /** Shape of the curve between the two values. Default "linear". */
  readonly shape?: RampShape | undefined
  /** Exponent of the shape "power". Default 2. */
  readonly power?: number | undefined
}

/** Share of the change that is completed after a share q of the iterations, by shape. */
const shapes = {
  linear: (q: number) => q,
  /** Half a cosine wave: slow at both ends. */
  cosine: (q: number) => (1 - Math.cos(Math.PI * q)) / 2,
  /** q^power: slow at the start for a power above 1. */
  power: (q: number, power: number) => q ** power,
  /** Cubic curve that is flat in the middle. */
  cubic: (q: number) => (1 + (2 * q - 1) ** 3) / 2,
}

/** Shape of a ramp: the curve between the first value and the last. */
export type RampShape = keyof typeof shapes
export const rampShapes = Object.keys(shapes) as readonly RampShape[]

/** Number, or a schedule of it. */
export type Scheduled = number | Schedule

/** Returns the value of a number or a schedule at a point of training. */
export function scheduleValue(value: Scheduled, progress: TrainingProgress): number {
  if (typeof value === "number") return value
  if (typeof value === "function") return value(progress)
  const { from, to, after = 0, shape = "linear", power = 2 } = value
  const { over = Math.max(progress.iterations - after, 1) } = value
  const share = Math.min(Math.max((progress.iteration - after) / over, 0), 1)
  return from + (to - from) * shapes[shape](share, power)
}

/** Options with numbers in place of schedules. */
export type ScheduledValues<T> = { readonly [Key in keyof T]: T[Key] extends Scheduled ? number : T[Key] }

/** Returns a copy of options with each schedule replaced by its value at a point of training. Other values are kept. */
export function scheduleValues<T extends object>(options: T, progress: TrainingProgress): ScheduledValues<T> {
  const numbers = Object.entries(options).map(([key, value]) => [
    key,
    isSchedule(value) ? scheduleValue(value, progress) : value,
  ])
  return Object.fromEntries(numbers)
}

function isSchedule(value: unknown): value is Schedule {
  return (
    typeof value === "function" || (typeof value === "object" && value !== null && "from" in value && "to" in value)
  )
}
