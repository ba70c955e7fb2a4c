import { choice, optionalChoice } from "../options/field.ts"
import { fieldsOf, makeNamed, type Named } from "../options/named.ts"
import type { CustomValue, OptionFields } from "../options/table.ts"
import type { Environment } from "./environment.ts"
import { lookFirst, lookFirstFields } from "./look-first.ts"
import { parallelCopies, parallelFields } from "./parallel.ts"
import { planFirst, planFirstFields } from "./plan-first.ts"

/** Function that builds an environment around another one. */
export type Wrapper = (environment: Environment) => Environment

/** Built-in wrappers by their names in configurations. */
export const wrappers = {
  "plan-first": { fields: planFirstFields, make: (options) => (inner) => planFirst(inner, options) },
  "look-first": { fields: lookFirstFields, make: (options) => (inner) => lookFirst(inner, options) },
  parallel: { fields: parallelFields, make: (options) => (inner) => parallelCopies(inner, options) },
} satisfies Readonly<Record<string, Named<OptionFields, Wrapper>>>

/** Custom wrapper as the value of an option. */
export const customWrapper: CustomValue<Wrapper> = {
  validate: (value) => (typeof value === "function" ? undefined : "must be a function environment => environment"),
}

/** Options that every environment has in a configuration. */
export const aroundEnvironment = {
  wrapper: optionalChoice(
    choice(
      undefined,
      fieldsOf(wrappers),
      "Wrapper of the environment: a planning step, an exploration, or several parallel copies.",
      {
        own: customWrapper,
      },
    ),
    "the environment as it is",
  ),
}

/** Wrapper of the given name, made with its options. */
export function makeWrapper(chosen: { readonly name: string }): Wrapper {
  return makeNamed<Wrapper>(wrappers, chosen)
}
