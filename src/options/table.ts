import type { Scheduled } from "./schedule.ts"

// Tables of options. A table holds the default, check and help of each option. Options, their types, the keys of configuration
// files and their documentation are derived from the tables (`readOptions`, `OptionsOf`, `ResolvedOf`).

/** Option of a table. */
export interface OptionField<T, Help extends string = string> {
  /** Default value; undefined if the option has none. */
  readonly default: T
  /** Description with units and without the default, which is added from `default`. */
  readonly help: Help
  /** Returns what a value must be ("must be an integer from 1 to 50"), or undefined for a valid value. */
  readonly validate: (value: unknown) => string | undefined
  /** Text for the default of an option without a default value: "every core". */
  readonly defaultText?: string | undefined
  /** Keys of a value that is an object. */
  readonly objectForm?: OptionFields
  /** Whether the option is available in programs only. */
  readonly codeOnly?: true
  /** Whether only gigpo sets the option, so that messages do not suggest it. */
  readonly hidden?: true
  /** JSON Schema of the values that a file can give, without description and default. Left out if any JSON value may be valid. */
  readonly schema?: ValueSchema | undefined
}

/** Subset of JSON Schema that describes the values of options. */
export interface ValueSchema {
  readonly type?: "string" | "number" | "integer" | "boolean" | "array" | "object"
  readonly enum?: readonly unknown[]
  readonly items?: ValueSchema
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
}

/** Option that must be given. */
export interface RequiredField<T, Help extends string = string> extends OptionField<T, Help> {
  readonly required: true
}

/** Number option that accepts a schedule. `Absent` is undefined if the option has no default. */
export interface ScheduledField<Help extends string = string, Absent extends undefined = never>
  extends OptionField<Scheduled | Absent, Help> {
  readonly objectForm: OptionFields
  readonly changes: true
}

/** Group of options. */
export interface Group<F extends OptionFields = OptionFields, Help extends string = string> {
  readonly fields: F
  readonly help: Help
}

/** Group of options that is undefined if it is left out. `defaultText` describes the behavior then. */
export interface OptionalGroup<F extends OptionFields = OptionFields, Help extends string = string>
  extends Group<F, Help> {
  readonly defaultText: string
}

/** Choice among several values with their options: selected by `name`, or a custom value in `use`. */
export interface Choice<
  Variants extends Readonly<Record<string, OptionFields>> = Readonly<Record<string, OptionFields>>,
  Fallback extends string | undefined = string | undefined,
  Common extends OptionFields = OptionFields,
  Own = unknown,
  Help extends string = string,
> {
  readonly variants: Variants
  /** Name that is selected where none is given; undefined if a name is required. */
  readonly default: Fallback
  /** Options of all variants, which are also allowed next to `use`. */
  readonly common: Common
  readonly own: CustomValue<Own>
  readonly help: Help
  /** Whether the options are kept as given, without their defaults. The code that opens the value fills them in. */
  readonly asGiven?: true
}

/** Choice that is undefined if it is left out. `defaultText` describes the behavior then. */
export interface OptionalChoice<
  Variants extends Readonly<Record<string, OptionFields>> = Readonly<Record<string, OptionFields>>,
  Fallback extends string | undefined = string | undefined,
  Common extends OptionFields = OptionFields,
  Own = unknown,
  Help extends string = string,
> extends Choice<Variants, Fallback, Common, Own, Help> {
  readonly defaultText: string
}

/** Custom value that a choice accepts in place of a name. In configuration files, the path of a module. */
export interface CustomValue<T> {
  /** Returns the predicate of a message about an invalid value ("must be …", "has no …"), or undefined for a valid value. */
  readonly validate: (value: unknown) => string | undefined
  /** Whether an object is intended as a custom value, even an invalid one. Other objects are read as options of a named variant. */
  readonly meant?: (value: object) => boolean
  /** Carrier of the type; never set. */
  readonly type?: T
}

/** Entry of a table: an option, a group or a choice. */
export type Entry = OptionField<unknown> | Group | Choice

/** Table of options by name. */
export interface OptionFields {
  readonly [key: string]: Entry
}

/** Bounds of a number: `min` and `max` are inclusive, `above` and `below` are exclusive. */
export interface Bounds {
  readonly min?: number
  readonly max?: number
  readonly above?: number
  readonly below?: number
}

/** Options as a caller gives them for a table. undefined selects the default. */
export type OptionsOf<F> = {
  readonly [Key in keyof F as F[Key] extends { readonly required: true } ? never : Key]?: Given<F[Key]> | undefined
} & { readonly [Key in keyof F as F[Key] extends { readonly required: true } ? Key : never]: Given<F[Key]> }

type Given<E> =
  E extends Choice<infer Variants, infer Fallback, infer Common, infer Own>
    ? Own | ({ readonly use: Own } & OptionsOf<Common>) | Named<Variants, Fallback, Common> | AnyNamed<Variants, Common>
    : E extends Group<infer F>
      ? OptionsOf<F>
      : E extends OptionField<infer T>
        ? Exclude<T, undefined>
        : never

type Named<Variants, Fallback, Common> = {
  [Name in keyof Variants]: Flat<
    (Name extends Fallback ? { readonly name?: Name | undefined } : { readonly name: Name }) &
      OptionsOf<Variants[Name]> &
      OptionsOf<Common>
  >
}[keyof Variants]

/** Name that is known only at run time, with the options that all variants share. */
type AnyNamed<Variants, Common> = Flat<
  { readonly name: keyof Variants } & OptionsOf<Pick<Variants[keyof Variants], keyof Variants[keyof Variants]>> &
    OptionsOf<Common>
>

type Flat<T> = { [Key in keyof T]: T[Key] }

/** Options of a table with defaults filled in. Options without a default may be missing. */
export type ResolvedOf<F> = { readonly [Key in keyof F]: Value<F[Key]> }

type Value<E> =
  E extends Choice<infer Variants, infer _, infer Common, infer Own>
    ?
        | ({ readonly use: Own } & ResolvedOf<Common>)
        | ResolvedNamed<Variants, Common>
        | (E extends OptionalChoice ? undefined : never)
    : E extends OptionalGroup<infer F>
      ? ResolvedOf<F> | undefined
      : E extends Group<infer F>
        ? ResolvedOf<F>
        : E extends OptionField<infer T>
          ? T
          : never

type ResolvedNamed<Variants, Common> = {
  [Name in keyof Variants]: { readonly name: Name } & ResolvedOf<Variants[Name]> & ResolvedOf<Common>
}[keyof Variants]
