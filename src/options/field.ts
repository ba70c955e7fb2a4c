import { GigpoError } from "../util/errors.ts"
import type { KeysOf } from "./arguments.ts"
import { display } from "./display.ts"
import { rampShapes } from "./schedule.ts"
import type {
  Bounds,
  Choice,
  CustomValue,
  Group,
  OptionalChoice,
  OptionalGroup,
  OptionField,
  OptionFields,
  OptionsOf,
  RequiredField,
  ScheduledField,
  ValueSchema,
} from "./table.ts"

import { unknownKey } from "./unknown-key.ts"

// Constructors of table entries. Arguments: the default (undefined for none), the help text and the allowed values.

interface Words {
  /** Text for the default of an option without a default value: "every core". */
  readonly defaultText?: string
}

interface About extends Words {
  /** JSON Schema of the values. */
  readonly schema?: ValueSchema
}

/** `undefined` where the default is undefined, otherwise `never`. */
type Absent<Fallback> = Extract<Fallback, undefined>

/**
 * Option with a custom check.
 *
 * @param problem - returns what a value must be ("must be odd"), or undefined for a valid value.
 * @throws GigpoError `BAD_ARGUMENT` for a default that the check rejects.
 */
export function field<T, const Help extends string>(
  fallback: T,
  help: Help,
  problem: (value: unknown) => string | undefined,
  { defaultText, schema }: About = {},
): OptionField<T, Help> {
  const wrong = fallback === undefined ? undefined : problem(fallback)
  if (wrong !== undefined)
    throw new GigpoError("BAD_ARGUMENT", `The default of the option "${help}" ${wrong}, not ${display(fallback)}.`)
  return { default: fallback, help, validate: problem, defaultText, ...(schema && { schema }) }
}

const boundKeys: KeysOf<Bounds & Words> = { min: true, max: true, above: true, below: true, defaultText: true }

/** Checks the names of the bounds: a misspelled bound would have no effect. */
function checkBounds(help: string, bounds: Bounds & Words): void {
  const unknown = unknownKey(bounds, boundKeys)
  if (unknown) throw new GigpoError("BAD_ARGUMENT", `The option "${help}" has an unknown bound: ${unknown}.`)
}

/** Option that is a finite number within bounds. */
export function number<F extends number | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  bounds: Bounds & Words = {},
): OptionField<number | Absent<F>, Help> {
  checkBounds(help, bounds)
  return field<number | Absent<F>, Help>(fallback as Absent<F>, help, (value) => misfit(value, "number", bounds), {
    ...bounds,
    schema: boundedSchema("number", bounds),
  })
}

/** Option that is a safe integer within bounds. */
export function integer<F extends number | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  bounds: Bounds & Words = {},
): OptionField<number | Absent<F>, Help> {
  checkBounds(help, bounds)
  const problem = (value: unknown) => misfit(value, "integer", bounds)
  const about = { ...bounds, schema: boundedSchema("integer", bounds) }
  return field<number | Absent<F>, Help>(fallback as Absent<F>, help, problem, about)
}

/** Option that is a number above the bound `above`, or Infinity for no limit. */
export function limit<const Help extends string>(
  fallback: number,
  help: Help,
  { above }: { readonly above: number },
): OptionField<number, Help> {
  const problem = (value: unknown) =>
    typeof value === "number" && value > above
      ? undefined
      : `must be a number above ${above}, or Infinity (.inf in YAML) to turn it off`
  return field<number, Help>(fallback, help, problem, { schema: boundedSchema("number", { above }) })
}

/** Option that is true or false. */
export function boolean<const Help extends string>(fallback: boolean, help: Help): OptionField<boolean, Help> {
  const problem = (value: unknown) => (typeof value === "boolean" ? undefined : "must be true or false")
  return field<boolean, Help>(fallback, help, problem, { schema: { type: "boolean" } })
}

/** Option that is one of several values. */
export function oneOf<const T, F extends T | undefined, const Help extends string>(
  fallback: F,
  values: readonly T[],
  help: Help,
  words?: Words,
): OptionField<T | Absent<F>, Help> {
  const wanted = values.map((value) => JSON.stringify(value)).join(" or ")
  const problem = (value: unknown) => (values.includes(value as T) ? undefined : `must be ${wanted}`)
  return field<T | Absent<F>, Help>(fallback as Absent<F>, help, problem, { ...words, schema: { enum: values } })
}

/** Option that is a string with at least one character besides white space. */
export function string<F extends string | undefined, const Help extends string>(
  fallback: F,
  help: Help,
  words?: Words,
): OptionField<string | Absent<F>, Help> {
  const problem = (value: unknown) =>
    typeof value === "string" && value.trim() !== "" ? undefined : "must be a non-empty string"
  const schema = { type: "string", pattern: "\\S" } as const
  return field<string | Absent<F>, Help>(fallback as Absent<F>, help, problem, { ...words, schema })
}

/** Option that is a list whose entries each pass the check of `of`. */
export function list<T, const Help extends string>(
  fallback: readonly T[],
  of: OptionField<T>,
  help: Help,
): OptionField<readonly T[], Help> {
  const problem = (value: unknown) => {
    if (!Array.isArray(value)) return "must be a list"
    const wrong = value.findIndex((one) => of.validate(one) !== undefined)
    return wrong < 0 ? undefined : `must be a list; each entry ${of.validate(value[wrong])}`
  }
  return field<readonly T[], Help>(fallback, help, problem, { schema: { type: "array", items: of.schema ?? {} } })
}

/** Option that is a function. Available in programs only, not in configuration files. */
export function callback<T, const Help extends string>(fallback: T, help: Help, words?: Words): OptionField<T, Help> {
  const problem = (value: unknown) => (typeof value === "function" ? undefined : "must be a function")
  return { ...field<T, Help>(fallback, help, problem, words), codeOnly: true }
}

/** Option that is an AbortSignal. Available in programs only, not in configuration files. */
export function abortSignal<const Help extends string>(help: Help): OptionField<AbortSignal | undefined, Help> {
  const problem = (value: unknown) => (value instanceof AbortSignal ? undefined : "must be an AbortSignal")
  return { ...field<AbortSignal | undefined, Help>(undefined, help, problem), codeOnly: true }
}

/** Copy of an option that must be given. */
export function required<T, Help extends string>(of: OptionField<T, Help>): RequiredField<Exclude<T, undefined>, Help> {
  return { ...of, default: undefined as Exclude<T, undefined>, required: true }
}

/** Copy of an option that also accepts an object with the keys of `form`. */
export function orObject<T, Help extends string, F extends OptionFields>(
  of: OptionField<T, Help>,
  form: F,
): OptionField<T | OptionsOf<F>, Help> {
  const problem = (value: unknown) => {
    const wrong = of.validate(value)
    return wrong && `${wrong}, or { ${Object.keys(form).join(", ")} }`
  }
  return { ...of, objectForm: form, validate: problem }
}

/**
 * Copy of a number option that also accepts a schedule: a ramp, or in programs a function of the training progress. The bounds apply to
 * both ends of a ramp and to the results of a function.
 */
export function scheduled<F extends number | undefined, Help extends string>(
  of: OptionField<F, Help>,
): ScheduledField<Help, Absent<F>> {
  const fallback = of.default as number | Absent<F>
  const { from, to, ...rest } = rampFields
  // The ends of a ramp must be finite, also where the option accepts Infinity.
  const problem = (value: unknown) => of.validate(value) ?? misfit(value, "number", {})
  const end = { validate: problem, schema: of.schema }
  return {
    ...of,
    default: fallback,
    objectForm: { from: { ...from, ...end }, to: { ...to, ...end }, ...rest },
    changes: true,
  }
}

const rampEnd = number(undefined, "")

/** Options of a ramp; see `ScheduleRamp`. */
export const rampFields = {
  from: required({ ...rampEnd, help: "First value." }),
  to: required({ ...rampEnd, help: "Last value." }),
  over: integer(undefined, "Iterations from the first value to the last.", {
    min: 1,
    defaultText: "all that remain after `after`",
  }),
  after: integer(0, "Iterations before the change begins.", { min: 0 }),
  shape: oneOf("linear", rampShapes, "Shape of the curve between the two values."),
  power: number(2, "Exponent of the shape power.", { above: 0 }),
}

/** Group of options. */
export function group<F extends OptionFields, const Help extends string>(fields: F, help: Help): Group<F, Help> {
  return { fields, help }
}

/** Group of options that is undefined if it is left out. `defaultText` says what holds then. */
export function optionalGroup<F extends OptionFields, const Help extends string>(
  fields: F,
  help: Help,
  defaultText: string,
): OptionalGroup<F, Help> {
  return { fields, help, defaultText }
}

/** Choice of a variant by `name`, or of a custom value in `use`, which `own` validates. `common` are options of all variants. */
export function choice<
  Variants extends Readonly<Record<string, OptionFields>>,
  Fallback extends (keyof Variants & string) | undefined,
  Own,
  const Help extends string,
  Common extends OptionFields = Readonly<Record<never, never>>,
>(
  fallback: Fallback,
  variants: Variants,
  help: Help,
  {
    own,
    common = {} as Common,
    ...rest
  }: { readonly own: CustomValue<Own>; readonly common?: Common; readonly asGiven?: true },
): Choice<Variants, Fallback, Common, Own, Help> {
  return { default: fallback, variants, help, own, common, ...rest }
}

/** Copy of a choice that may be left out. `defaultText` says what holds then. */
export function optionalChoice<
  Variants extends Readonly<Record<string, OptionFields>>,
  Fallback extends (keyof Variants & string) | undefined,
  Own,
  Help extends string,
  Common extends OptionFields,
>(
  of: Choice<Variants, Fallback, Common, Own, Help>,
  defaultText: string,
): OptionalChoice<Variants, Fallback, Common, Own, Help> {
  return { ...of, defaultText }
}

function boundedSchema(type: "number" | "integer", { min, max, above, below }: Bounds): ValueSchema {
  return {
    type,
    ...(min !== undefined && { minimum: min }),
    ...(max !== undefined && { maximum: max }),
    ...(above !== undefined && { exclusiveMinimum: above }),
    ...(below !== undefined && { exclusiveMaximum: below }),
  }
}

function misfit(value: unknown, kind: "number" | "integer", bounds: Bounds): string | undefined {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = bounds
  const { above = Number.NEGATIVE_INFINITY, below = Number.POSITIVE_INFINITY } = bounds
  const isKind = typeof value === "number" && (kind === "number" ? Number.isFinite(value) : Number.isSafeInteger(value))
  if (isKind && value >= min && value <= max && value > above && value < below) return undefined
  const named = kind === "number" ? "a number" : "an integer"
  if (Number.isFinite(min) && Number.isFinite(max)) return `must be ${named} from ${min} to ${max}`
  if (typeof value !== "number" || Number.isNaN(value)) return "must be a number"
  if (!isKind) return `must be ${kind === "number" ? "a finite number" : named}`
  const words = [
    ...(Number.isFinite(min) ? [`at least ${min}`] : []),
    ...(Number.isFinite(above) ? [`above ${above}`] : []),
    ...(Number.isFinite(max) ? [`at most ${max}`] : []),
    ...(Number.isFinite(below) ? [`below ${below}`] : []),
  ]
  return `must be ${words.join(" and ")}`
}
