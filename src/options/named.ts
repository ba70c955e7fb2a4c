import { only } from "./fixed.ts"
import type { Fields } from "./table.ts"

/** Something that can be made by its name: its options, and what makes it of them. */
export interface Named<F extends Fields, Made> {
  readonly fields: F
  make(options: never): Made
}

/** What a resolved choice names, made of its options; what stands beside these is left aside. */
export function makeNamed<Made>(
  named: Readonly<Record<string, Named<Fields, Made>>>,
  chosen: { readonly name: string },
): Made {
  const { fields, make } = named[chosen.name]!
  return make(only(chosen, fields) as never)
}

/** The tables of several, by name: the variants of a choice. */
export function fieldsOf<N extends Readonly<Record<string, Named<Fields, unknown>>>>(
  named: N,
): { readonly [name in keyof N]: N[name]["fields"] } {
  const tables = Object.entries(named).map(([name, { fields }]) => [name, fields])
  return Object.fromEntries(tables)
}
