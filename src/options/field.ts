import { GigpoError } from "../errors.ts"
import { display } from "./display.ts"
import { rampShapes } from "./schedule.ts"
import type {
  Bounds,
  Choice,
  Field,
  Fields,
  Group,
  OptionalChoice,
  OptionalGroup,
  OptionsOf,
  OwnValue,
  RequiredField,
  ScheduledField,
} from "./table.ts"

// The constructors of tables: a default (undefined for none), what is said of the option, and what its values may be.

interface Words {
  /** What holds where the option is left out and has no default: "every core". */
  readonly otherwise?: string
}

/** `Fallback` where it is undefined: an option without a default. */
type Absent<Fallback> = Extract<Fallback, undefined>

/** Any option: `problem` says what a wrong value must be. A default that it would refuse is refused at once. */
export function field<T, const Help extends string>(
  fallback: T,
  help: Help,
  problem: (value: unknown) => string | undefined,
  { otherwise }: Words = {},
): Field<T, Help> {
  const wrong = fallback === undefined ? undefined : problem(fallback)
  if (wrong !== undefined)
    throw new GigpoError("BAD_ARGUMENT", `The default of the option "${help}" ${wrong}, not ${display(fallback)}.`)
  return { fallback, help, problem, otherwise }
}

/** A finite number. */
export function number<F extends number | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  bounds: Bounds & Words = {},
): Field<number | Absent<F>, Help> {
  return field<number | Absent<F>, Help>(
    fallback as Absent<F>,
    help,
    (value) => misfit(value, "number", bounds),
    bounds,
  )
}

export function whole<F extends number | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  bounds: Bounds & Words = {},
): Field<number | Absent<F>, Help> {
  const problem = (value: unknown) => misfit(value, "whole number", bounds)
  return field<number | Absent<F>, Help>(fallback as Absent<F>, help, problem, bounds)
}

/** A number above a bound, or Infinity: no limit at all. */
export function limit<const Help extends string>(
  fallback: number,
  help: Help,
  { above }: { readonly above: number },
): Field<number, Help> {
  return field<number, Help>(fallback, help, (value) =>
    typeof value === "number" && value > above
      ? undefined
      : `must be a number above ${above}, or Infinity (.inf in YAML) to turn it off`,
  )
}

export function flag<const Help extends string>(fallback: boolean, help: Help): Field<boolean, Help> {
  return field<boolean, Help>(fallback, help, (value) =>
    typeof value === "boolean" ? undefined : "must be true or false",
  )
}

export function oneOf<const T, F extends T | undefined, const Help extends string>(
  fallback: F,
  values: readonly T[],
  help: Help,
  words?: Words,
): Field<T | Absent<F>, Help> {
  const wanted = values.map((value) => JSON.stringify(value)).join(" or ")
  const problem = (value: unknown) => (values.includes(value as T) ? undefined : `must be ${wanted}`)
  return field<T | Absent<F>, Help>(fallback as Absent<F>, help, problem, words)
}

/** A text that is not blank. */
export function text<F extends string | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  words?: Words,
): Field<string | Absent<F>, Help> {
  const problem = (value: unknown) =>
    typeof value === "string" && value.trim() !== "" ? undefined : "must be a text that is not blank"
  return field<string | Absent<F>, Help>(fallback as Absent<F>, help, problem, words)
}

/** Values that each are as `of` has them. */
export function list<T, const Help extends string>(
  fallback: readonly T[],
  of: Field<T>,
  help: Help,
): Field<readonly T[], Help> {
  return field<readonly T[], Help>(fallback, help, (value) => {
    if (!Array.isArray(value)) return "must be a list"
    const wrong = value.findIndex((one) => of.problem(one) !== undefined)
    return wrong < 0 ? undefined : `must be a list of which each ${of.problem(value[wrong])}`
  })
}

/** A function: only programs can give one, configuration files cannot. */
export function callback<T, const Help extends string>(fallback: T, help: Help, words?: Words): Field<T, Help> {
  const problem = (value: unknown) => (typeof value === "function" ? undefined : "must be a function")
  return { ...field<T, Help>(fallback, help, problem, words), inCode: true }
}

/** Only programs can give one. */
export function abortSignal<const Help extends string>(help: Help): Field<AbortSignal | undefined, Help> {
  const problem = (value: unknown) => (value instanceof AbortSignal ? undefined : "must be an AbortSignal")
  return { ...field<AbortSignal | undefined, Help>(undefined, help, problem), inCode: true }
}

/** The same option, to be given always. */
export function required<T, Help extends string>(of: Field<T, Help>): RequiredField<Exclude<T, undefined>, Help> {
  return { ...of, fallback: undefined as Exclude<T, undefined>, required: true }
}

/** The same option, or an object with keys of its own. */
export function orObject<T, Help extends string, F extends Fields>(
  of: Field<T, Help>,
  form: F,
): Field<T | OptionsOf<F>, Help> {
  const problem = (value: unknown) => {
    const wrong = of.problem(value)
    return wrong && `${wrong}, or { ${Object.keys(form).join(", ")} }`
  }
  return { ...of, form, problem }
}

/** The same number, or a schedule of it: a ramp, whose both ends obey its bounds, or in code a function of the moment. */
export function scheduled<F extends number | undefined, Help extends string>(
  of: Field<F, Help>,
): ScheduledField<Help, Absent<F>> {
  const fallback = of.fallback as number | Absent<F>
  const { from, to, ...rest } = rampFields
  // From a number to Infinity there is no way.
  const problem = (value: unknown) => of.problem(value) ?? misfit(value, "number", {})
  return { ...of, fallback, form: { from: { ...from, problem }, to: { ...to, problem }, ...rest }, changes: true }
}

const end = number(undefined, "")

/** The keys of a ramp; see `Ramp`. */
export const rampFields = {
  from: required({ ...end, help: "What it starts from." }),
  to: required({ ...end, help: "What it comes to." }),
  over: whole(undefined, "Iterations that it takes.", { least: 1, otherwise: "all that are left after `after`" }),
  after: whole(0, "Iterations before it begins.", { least: 0 }),
  shape: oneOf("linear", rampShapes, "How it goes from one to the other."),
  power: number(2, "The exponent of the shape power.", { above: 0 }),
}

export function group<F extends Fields, const Help extends string>(fields: F, help: Help): Group<F, Help> {
  return { fields, help }
}

export function optionalGroup<F extends Fields, const Help extends string>(
  fields: F,
  help: Help,
  otherwise: string,
): OptionalGroup<F, Help> {
  return { fields, help, otherwise }
}

/** One of `variants`, by `name`, or something of one's own. */
export function choice<
  Variants extends Readonly<Record<string, Fields>>,
  Fallback extends (keyof Variants & string) | undefined,
  Own,
  const Help extends string,
  Common extends Fields = Readonly<Record<never, never>>,
>(
  fallback: Fallback,
  variants: Variants,
  help: Help,
  {
    own,
    common = {} as Common,
    ...rest
  }: { readonly own: OwnValue<Own>; readonly common?: Common; readonly asGiven?: true },
): Choice<Variants, Fallback, Common, Own, Help> {
  return { fallback, variants, help, own, common, ...rest }
}

/** The same choice, that need not be made. */
export function optionalChoice<
  Variants extends Readonly<Record<string, Fields>>,
  Fallback extends (keyof Variants & string) | undefined,
  Own,
  Help extends string,
  Common extends Fields,
>(
  of: Choice<Variants, Fallback, Common, Own, Help>,
  otherwise: string,
): OptionalChoice<Variants, Fallback, Common, Own, Help> {
  return { ...of, otherwise }
}

function misfit(value: unknown, kind: "number" | "whole number", bounds: Bounds): string | undefined {
  const { least = Number.NEGATIVE_INFINITY, most = Number.POSITIVE_INFINITY } = bounds
  const { above = Number.NEGATIVE_INFINITY, below = Number.POSITIVE_INFINITY } = bounds
  const isKind = typeof value === "number" && (kind === "number" ? Number.isFinite(value) : Number.isSafeInteger(value))
  if (isKind && value >= least && value <= most && value > above && value < below) return undefined
  if (Number.isFinite(least) && Number.isFinite(most)) return `must be a ${kind} from ${least} to ${most}`
  if (typeof value !== "number" || Number.isNaN(value)) return "must be a number"
  if (!isKind) return `must be a ${kind === "number" ? "finite number" : kind}`
  const words = [
    ...(Number.isFinite(least) ? [`at least ${least}`] : []),
    ...(Number.isFinite(above) ? [`above ${above}`] : []),
    ...(Number.isFinite(most) ? [`at most ${most}`] : []),
    ...(Number.isFinite(below) ? [`below ${below}`] : []),
  ]
  return `must be ${words.join(" and ")}`
}
