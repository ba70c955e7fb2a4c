import type { Scope } from "./compile-expression.ts"
import { type Environment, read, write } from "./environment.ts"
import { fail } from "./errors.ts"
import { Namespace } from "./globals.ts"
import type { Expression } from "./nodes.ts"
import { iterate, type Value } from "./values.ts"

type Store = (env: Environment, value: Value) => void

/** Compiles an assignment. Namespaces are checked before the value is computed. */
export function assign(target: Expression, scope: Scope): (env: Environment, value: () => Value) => undefined {
  const checks = namespaces(target).map((name) => {
    const place = scope.symbols.place(name)
    return (env: Environment) =>
      read(env, place) instanceof Namespace || fail("TemplateError", "cannot assign attribute on non-namespace object")
  })
  const store = compileTarget(target, scope)
  return (env, value) => {
    for (const check of checks) check(env)
    store(env, value())
  }
}

function namespaces(target: Expression): readonly string[] {
  if (target.kind === "NamespaceTarget") return [target.name]
  return target.kind === "Tuple" ? target.items.flatMap(namespaces) : []
}

/** Compiles the store to a target: a name, an attribute of a namespace, or several of them. */
export function compileTarget(target: Expression, scope: Scope): Store {
  if (target.kind === "Name") {
    const place = scope.symbols.place(target.name)
    return (env, value) => write(env, place, value)
  }
  if (target.kind === "NamespaceTarget") {
    const place = scope.symbols.place(target.name)
    return (env, value) => (read(env, place) as Namespace).set(target.attribute, value)
  }
  if (target.kind !== "Tuple") return fail("AssertionError", `cannot assign to ${target.kind}`)
  const stores = target.items.map((item) => compileTarget(item, scope))
  return (env, value) => {
    const values = unpack(value, stores.length)
    for (const [at, store] of stores.entries()) store(env, values[at] as Value)
  }
}

function unpack(value: Value, count: number): readonly Value[] {
  const values: Value[] = []
  for (const item of iterate(value)) {
    if (values.length === count) fail("ValueError", `too many values to unpack (expected ${count})`)
    values.push(item)
  }
  if (values.length < count) fail("ValueError", `not enough values to unpack (expected ${count}, got ${values.length})`)
  return values
}
