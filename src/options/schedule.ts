/** Where a run stands when a number is asked for. */
export interface Moment {
  /** Iterations completed before this one. */
  readonly iteration: number
  /** Iterations of the whole run. */
  readonly iterations: number
}

/** A number that changes over a run: from one to another, or, in code, any function. */
export type Schedule = ((moment: Moment) => number) | Ramp

export interface Ramp {
  readonly from: number
  readonly to: number
  /** Iterations that it takes. Default: all that are left after `after`. */
  readonly over?: number | undefined
  /** Iterations before it begins. Default 0. */
  readonly after?: number | undefined
  /** Default "linear". */
  readonly shape?: "linear" | "cosine" | undefined
}

export type Scheduled = number | Schedule

/** The number at this moment. */
export function at(value: Scheduled, moment: Moment): number {
  if (typeof value === "number") return value
  if (typeof value === "function") return value(moment)
  const { from, to, after = 0, shape = "linear" } = value
  const { over = Math.max(moment.iterations - after, 1) } = value
  const share = Math.min(Math.max((moment.iteration - after) / over, 0), 1)
  return from + (to - from) * (shape === "cosine" ? (1 - Math.cos(Math.PI * share)) / 2 : share)
}

/** Options whose schedules have come to numbers. */
export type AtMoment<T> = { readonly [Key in keyof T]: T[Key] extends Scheduled ? number : T[Key] }

/** Every number of a group of options at this moment; what is no schedule stays. */
export function atMoment<T extends object>(options: T, moment: Moment): AtMoment<T> {
  const numbers = Object.entries(options).map(([key, value]) => [key, isSchedule(value) ? at(value, moment) : value])
  return Object.fromEntries(numbers)
}

function isSchedule(value: unknown): value is Schedule {
  return (
    typeof value === "function" || (typeof value === "object" && value !== null && "from" in value && "to" in value)
  )
}
