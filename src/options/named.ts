import { only } from "./fixed.ts"
import type { OptionFields } from "./table.ts"

/** Table of options and factory of a value that is selected by name. */
export interface Named<F extends OptionFields, Made> {
  readonly fields: F
  make(options: never): Made
}

/** Makes the value that a resolved choice selects. Keys that are not its options are ignored. */
export function makeNamed<Made>(
  named: Readonly<Record<string, Named<OptionFields, Made>>>,
  chosen: { readonly name: string },
): Made {
  const { fields, make } = named[chosen.name]!
  return make(only(chosen, fields) as never)
}

/** Returns the tables of several named values, as the variants of a choice. */
export function fieldsOf<N extends Readonly<Record<string, Named<OptionFields, unknown>>>>(
  named: N,
): { readonly [name in keyof N]: N[name]["fields"] } {
  const tables = Object.entries(named).map(([name, { fields }]) => [name, fields])
  return Object.fromEntries(tables)
}
