import type { Scheduled } from "./schedule.ts"

// What an option is: a table holds each once, with its default, its check and its help. Options, their types, the keys of
// configuration files and what is said about them follow from the tables (`readOptions`, `OptionsOf`, `Resolved`).

/** One option. */
export interface Field<T, Help extends string = string> {
  /** Its default; undefined where it has none. */
  readonly default: T
  /** Says what it is, with units and without the default, which is told from `fallback`. */
  readonly help: Help
  /** What the value must be (`must be a whole number from 1 to 50`), or `undefined` where it is fine. */
  readonly validate: (value: unknown) => string | undefined
  /** What holds where there is no default to show: "every core". */
  readonly defaultText?: string | undefined
  /** The keys of a value that is an object. */
  readonly objectForm?: Fields
  /** Only programs can give it. */
  readonly codeOnly?: true
  /** JSON Schema of the values that a file can give, without help and default; left out where any JSON may fit. */
  readonly schema?: ValueSchema | undefined
}

/** The part of JSON Schema that values of options need. */
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

/** One that must be given. */
export interface RequiredField<T, Help extends string = string> extends Field<T, Help> {
  readonly required: true
}

/** A number that may change over a run; `Absent` is undefined where it has no default. */
export interface ScheduledField<Help extends string = string, Absent extends undefined = never>
  extends Field<Scheduled | Absent, Help> {
  readonly objectForm: Fields
  readonly changes: true
}

/** Options that stand together. */
export interface Group<F extends Fields = Fields, Help extends string = string> {
  readonly fields: F
  readonly help: Help
}

/** A group that is only there where it is given; `otherwise` says what holds without. */
export interface OptionalGroup<F extends Fields = Fields, Help extends string = string> extends Group<F, Help> {
  readonly defaultText: string
}

/** One of several things, each with options of its own: chosen by `name`, or handed in by `use`. */
export interface Choice<
  Variants extends Readonly<Record<string, Fields>> = Readonly<Record<string, Fields>>,
  Fallback extends string | undefined = string | undefined,
  Common extends Fields = Fields,
  Own = unknown,
  Help extends string = string,
> {
  readonly variants: Variants
  /** The name where none is given; undefined where one must be. */
  readonly default: Fallback
  /** Options whatever is chosen, also beside `use`. */
  readonly common: Common
  readonly own: CustomValue<Own>
  readonly help: Help
  /** Stays as it is given: whoever opens it fills in the defaults. */
  readonly asGiven?: true
}

/** A choice that is only made where something is given; `otherwise` says what holds without. */
export interface OptionalChoice<
  Variants extends Readonly<Record<string, Fields>> = Readonly<Record<string, Fields>>,
  Fallback extends string | undefined = string | undefined,
  Common extends Fields = Fields,
  Own = unknown,
  Help extends string = string,
> extends Choice<Variants, Fallback, Common, Own, Help> {
  readonly defaultText: string
}

/** What may be handed in in place of a name. In configuration files it is the path of a module. */
export interface CustomValue<T> {
  /** What is wrong with it, to be said after what it is called ("must be …", "has no …"); undefined where it is one. */
  readonly validate: (value: unknown) => string | undefined
  /** Whether an object is meant as one, even if it is wrong: what is not is read as options of a name. */
  readonly meant?: (value: object) => boolean
  /** The type alone. */
  readonly type?: T
}

export type Entry = Field<unknown> | Group | Choice

/** Table of options by name. */
export interface Fields {
  readonly [key: string]: Entry
}

/** Where a number may lie: least and most belong to it, above and below do not. */
export interface Bounds {
  readonly min?: number
  readonly max?: number
  readonly above?: number
  readonly below?: number
}

/** What may be given for a table; undefined means the default everywhere. */
export type OptionsOf<F> = {
  readonly [Key in keyof F as F[Key] extends { readonly required: true } ? never : Key]?: Given<F[Key]> | undefined
} & { readonly [Key in keyof F as F[Key] extends { readonly required: true } ? Key : never]: Given<F[Key]> }

type Given<E> =
  E extends Choice<infer Variants, infer Fallback, infer Common, infer Own>
    ? Own | ({ readonly use: Own } & OptionsOf<Common>) | Named<Variants, Fallback, Common> | AnyNamed<Variants, Common>
    : E extends Group<infer F>
      ? OptionsOf<F>
      : E extends Field<infer T>
        ? Exclude<T, undefined>
        : never

type Named<Variants, Fallback, Common> = {
  [Name in keyof Variants]: Flat<
    (Name extends Fallback ? { readonly name?: Name | undefined } : { readonly name: Name }) &
      OptionsOf<Variants[Name]> &
      OptionsOf<Common>
  >
}[keyof Variants]

/** A name that is only known when it runs, with the options that all have. */
type AnyNamed<Variants, Common> = Flat<
  { readonly name: keyof Variants } & OptionsOf<Pick<Variants[keyof Variants], keyof Variants[keyof Variants]>> &
    OptionsOf<Common>
>

type Flat<T> = { [Key in keyof T]: T[Key] }

/** The same with every default filled in; options without one may still be missing. */
export type Resolved<F> = { readonly [Key in keyof F]: Value<F[Key]> }

type Value<E> =
  E extends Choice<infer Variants, infer _, infer Common, infer Own>
    ?
        | ({ readonly use: Own } & Resolved<Common>)
        | ResolvedNamed<Variants, Common>
        | (E extends OptionalChoice ? undefined : never)
    : E extends OptionalGroup<infer F>
      ? Resolved<F> | undefined
      : E extends Group<infer F>
        ? Resolved<F>
        : E extends Field<infer T>
          ? T
          : never

type ResolvedNamed<Variants, Common> = {
  [Name in keyof Variants]: { readonly name: Name } & Resolved<Variants[Name]> & Resolved<Common>
}[keyof Variants]
