import { choice, optionalChoice } from "../options/field.ts"
import { fieldsOf, makeNamed, type Named } from "../options/named.ts"
import type { CustomValue, Fields } from "../options/table.ts"
import type { Environment } from "./environment.ts"
import { lookFirst, lookFirstFields } from "./look-first.ts"
import { parallel, parallelFields } from "./parallel.ts"
import { planFirst, planFirstFields } from "./plan-first.ts"

/** An environment built around another one. */
export type Wrapper = (environment: Environment) => Environment

/** Those that ship, by the names that configurations give them. */
export const wrappers = {
  "plan-first": { fields: planFirstFields, make: (options) => (inner) => planFirst(inner, options) },
  "look-first": { fields: lookFirstFields, make: (options) => (inner) => lookFirst(inner, options) },
  parallel: { fields: parallelFields, make: (options) => (inner) => parallel(inner, options) },
} satisfies Readonly<Record<string, Named<Fields, Wrapper>>>

/** One of one's own. */
export const customWrapper: CustomValue<Wrapper> = {
  validate: (value) => (typeof value === "function" ? undefined : "must be a function environment => environment"),
}

/** What stands beside the options of every environment in a configuration. */
export const aroundEnvironment = {
  wrapper: optionalChoice(
    choice(
      undefined,
      fieldsOf(wrappers),
      "What is built around the environment: a plan first, a look first, several copies at once.",
      {
        own: customWrapper,
      },
    ),
    "the environment as it is",
  ),
}

/** The wrapper of that name, with its options. */
export function makeWrapper(chosen: { readonly name: string }): Wrapper {
  return makeNamed<Wrapper>(wrappers, chosen)
}
