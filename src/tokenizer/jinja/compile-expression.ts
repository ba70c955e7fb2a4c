import { binary, signed } from "./arithmetic.ts"
import { compare, contains, equal } from "./compare.ts"
import { Dict } from "./dict.ts"
import { type Environment, readName } from "./environment.ts"
import { fail, unsupported } from "./errors.ts"
import { filters, findFilter, findTest, tests } from "./filters.ts"
import { limited, step } from "./limits.ts"
import type { Applied, CallArguments, Conditional, Expression, Operand } from "./nodes.ts"
import { isConstant } from "./nodes.ts"
import { str } from "./print.ts"
import { getAttribute, getItem, isSliceable, slice } from "./subscript.ts"
import type { Symbols } from "./symbols.ts"
import { type Arguments, effort, iterate, PyObject, Tuple, truthy, typeName, Undefined, type Value } from "./values.ts"

export type Evaluate = (env: Environment) => Value

export interface Scope {
  readonly symbols: Symbols
  /** Whether unknown filters and tests fail only when they are evaluated, as inside conditions. */
  readonly soft: boolean
}

export const soften = (scope: Scope): Scope => ({ ...scope, soft: true })

export function compileExpression(node: Expression, scope: Scope): Evaluate {
  const compile = (part: Expression) => compileExpression(part, scope)
  const all = (parts: readonly Expression[]) => parts.map(compile)
  switch (node.kind) {
    case "Constant":
      return () => node.value
    case "Name":
      return readName(node.name, scope.symbols.place(node.name))
    case "Tuple": {
      const items = all(node.items)
      return (env) => new Tuple(items.map((item) => item(env)))
    }
    case "List": {
      const items = all(node.items)
      return (env) => items.map((item) => item(env))
    }
    case "Dict": {
      const pairs = node.pairs.map(([key, value]) => [compile(key), compile(value)] as const)
      return (env) => Dict.of(pairs.map(([key, value]) => [key(env), value(env)]))
    }
    case "Unary":
      return compileUnary(node.operator, compile(node.operand))
    case "Binary":
      return compileBinary(node.operator, compile(node.left), compile(node.right))
    case "Concat": {
      const items = all(node.items)
      return (env) =>
        limited(
          items
            .map((item) => item(env))
            .map(str)
            .join(""),
        )
    }
    case "Compare":
      return compileCompare(
        compile(node.first),
        node.rest.map(({ operator, value }) => [operator, compile(value)]),
      )
    case "Conditional":
      return compileConditional(node, soften(scope))
    case "Attribute": {
      const target = compile(node.target)
      return (env) => getAttribute(target(env), node.name)
    }
    case "Item": {
      const [target, key] = [compile(node.target), compile(node.key)]
      return (env) => getItem(target(env), key(env))
    }
    case "Slice": {
      const target = compile(node.target)
      const [start, stop, stride] = [node.start, node.stop, node.stride].map((part) => part && compile(part))
      const constant = isConstant(node)
      return (env) => {
        const value = target(env)
        // Jinja2 evaluates such a slice at compile time, where the result is empty instead of an error.
        if (constant && !isSliceable(value)) unsupported(`a slice of the constant ${str(value)}`)
        return slice(value, start?.(env) ?? null, stop?.(env) ?? null, stride?.(env) ?? null)
      }
    }
    case "Call":
      return compileCall(node.target, node.args, scope)
    case "Filter":
    case "Test":
      return compileApplied(node, scope, node.target && compile(node.target))
    default:
      return fail("AssertionError", `${node.kind} has no value`)
  }
}

function compileUnary(operator: "+" | "-" | "not", operand: Evaluate): Evaluate {
  if (operator === "not") return (env) => !truthy(operand(env))
  return (env) => signed(operator, operand(env))
}

function compileBinary(
  operator: (Expression & { kind: "Binary" })["operator"],
  left: Evaluate,
  right: Evaluate,
): Evaluate {
  if (operator === "and" || operator === "or")
    return (env) => {
      const value = left(env)
      return truthy(value) === (operator === "and") ? right(env) : value
    }
  return (env) => binary(operator, left(env), right(env))
}

function compileCompare(first: Evaluate, rest: readonly (readonly [Operand["operator"], Evaluate])[]): Evaluate {
  return (env) => {
    let value = first(env)
    for (const [operator, next] of rest) {
      const other = next(env)
      if (!holds(operator, value, other)) return false
      value = other
    }
    return true
  }
}

function holds(operator: Operand["operator"], value: Value, other: Value): boolean {
  switch (operator) {
    case "==":
      return equal(value, other)
    case "!=":
      return !equal(value, other)
    case "in":
      return contains(other, value)
    case "not in":
      return !contains(other, value)
    default:
      return compare(operator, value, other)
  }
}

function compileConditional(node: Conditional, scope: Scope): Evaluate {
  const [test, value] = [compileExpression(node.test, scope), compileExpression(node.value, scope)]
  const otherwise = node.otherwise && compileExpression(node.otherwise, scope)
  const reason = `the inline if-expression on line ${node.line} evaluated to false and no else section was defined.`
  return (env) => (truthy(test(env)) ? value(env) : otherwise === undefined ? new Undefined(reason) : otherwise(env))
}

/** Compiles the arguments of a call, appended to given ones. */
export function compileArguments(
  args: CallArguments,
  scope: Scope,
): (env: Environment, before?: readonly Value[]) => Arguments {
  const compile = (part: Expression) => compileExpression(part, scope)
  const positional = args.positional.map(compile)
  const named = args.named.map(({ name, value }) => [name, compile(value)] as const)
  const [rest, namedRest] = [args.rest && compile(args.rest), args.namedRest && compile(args.namedRest)]
  return (env, before = []) => {
    const values = [...before, ...positional.map((value) => value(env))]
    if (rest !== undefined) values.push(...iterate(rest(env)))
    const byName = new Map(named.map(([name, value]) => [name, value(env)]))
    if (namedRest !== undefined) addNamed(byName, namedRest(env))
    return { positional: values, named: byName }
  }
}

function addNamed(named: Map<string, Value>, more: Value): void {
  if (more instanceof Undefined) more.raise()
  const mapping =
    more instanceof Dict ? more : fail("TypeError", `argument after ** must be a mapping, not ${typeName(more)}`)
  for (const [key, value] of mapping.entries()) {
    const name = typeof key === "string" ? key : fail("TypeError", "keywords must be strings")
    if (named.has(name)) fail("TypeError", `got multiple values for keyword argument '${name}'`)
    named.set(name, value)
  }
}

function compileCall(callee: Expression, args: CallArguments, scope: Scope): Evaluate {
  const target = compileExpression(callee, scope)
  const given = compileArguments(args, scope)
  return (env) => {
    const called = target(env)
    return call(called, given(env))
  }
}

export function call(target: Value, args: Arguments): Value {
  step()
  if (target instanceof Undefined) target.raise()
  if (target instanceof PyObject && target.call !== undefined) return target.call(args)
  return fail("TypeError", `'${typeName(target)}' object is not callable`)
}

/** Compiles a filter or test applied to a target. */
export function compileApplied(node: Applied, scope: Scope, target: Evaluate | undefined): Evaluate {
  const [find, known] = node.kind === "Filter" ? [findFilter, filters] : [findTest, tests]
  if (target === undefined) return fail("AssertionError", `the filter ${node.name} has no target`)
  if (!known.has(node.name) && !scope.soft)
    fail("TemplateSyntaxError", `No ${node.kind.toLowerCase()} named '${node.name}'.`)
  const given = compileArguments(node.args, scope)
  return (env) => {
    const value = target(env)
    step(effort(value))
    return find(node.name)(given(env, [value]))
  }
}
