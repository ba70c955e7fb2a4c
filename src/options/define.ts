import type { About } from "./about.ts"
import { withDefaults } from "./defaults.ts"
import type { OptionFields, OptionsOf } from "./table.ts"

// An algorithm is one value: a factory with its name, options and description as properties. Registries, YAML names and
// docs/algorithms.md are generated from these values.

/** Variants of an algorithm by name: the same factory with other defaults. */
export type Variants<F extends OptionFields> = Readonly<
  Record<string, { readonly defaults: OptionsOf<F>; readonly about: About }>
>

/** Factory of an algorithm, with the name in configurations, the options and the description as properties. */
export type Defined<Name extends string, F extends OptionFields, Make, V> = Make & {
  readonly name: Name
  readonly fields: F
  readonly make: Make
  readonly about: About
  readonly variants: V
}

/**
 * Returns a function that defines algorithms of one kind.
 *
 * @typeParam Value - result of an algorithm's factory, such as an estimator or a loss
 */
export function defining<Value>() {
  return <
    const Name extends string,
    F extends OptionFields,
    Make extends (options: never) => Value,
    const V extends Variants<F> = Readonly<Record<never, never>>,
  >(definition: {
    readonly name: Name
    readonly fields: F
    readonly about: About
    readonly variants?: V
    make: Make
  }): Defined<Name, F, Make, V> => {
    const { name, fields, about, make, variants = {} } = definition
    const factory = (options: never) => make(options)
    Object.defineProperty(factory, "name", { value: name })
    return Object.assign(factory, { fields, about, make, variants }) as unknown as Defined<Name, F, Make, V>
  }
}

interface AnyDefined {
  readonly name: string
  readonly fields: OptionFields
  readonly make: (options: never) => unknown
  readonly about: About
  readonly variants: Variants<OptionFields>
}

/** Definitions that a module exports, by their names in configurations. Variants are included and keep the `name` of their definition. */
type ByName<Exports> = {
  readonly [D in Exports[keyof Exports] as D extends { readonly name: infer Name; readonly variants: infer V }
    ? (Name & string) | (keyof V & string)
    : never]: D extends AnyDefined ? Pick<D, "name" | "fields" | "make" | "about"> : never
}

/** Registry of all definitions that a module exports, sorted by name. */
export function byName<Exports extends object>(exports: Exports): ByName<Exports> {
  const all = Object.values(exports as Readonly<Record<string, AnyDefined>>).flatMap(
    ({ name, fields, make, about, variants }) => [
      { selected: name, name, fields, make, about },
      ...Object.entries(variants).map(([selected, { defaults, about: own }]) => {
        return { selected, name, fields: withDefaults(fields, defaults), make, about: own }
      }),
    ],
  )
  all.sort((a, b) => (a.selected < b.selected ? -1 : 1))
  return Object.fromEntries(all.map(({ selected, ...definition }) => [selected, definition])) as ByName<Exports>
}
