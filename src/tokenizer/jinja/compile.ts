import { atOnce, type Pieces } from "../../util/pace.ts"
import { assign } from "./assign.ts"
import {
  call,
  compileApplied,
  compileArguments,
  compileExpression,
  type Evaluate,
  type Scope,
  soften,
} from "./compile-expression.ts"
import { compileLoop } from "./compile-loop.ts"
import { compileCaller, compileMacro } from "./compile-macro.ts"
import { type Enter, Environment, enterScope, Output, write } from "./environment.ts"
import { fail, unsupported } from "./errors.ts"
import type { Body, CallBlock, Expression, SetBlock, Statement, With } from "./nodes.ts"
import { parse } from "./parser.ts"
import { str } from "./print.ts"
import { Symbols } from "./symbols.ts"
import { Markup, truthy, typeName, type Value } from "./values.ts"

/** Completion of a statement: normal (undefined), or a jump of the enclosing loop. */
export type Jump = "break" | "continue" | undefined
export type Execute = (env: Environment, out: Output) => Jump
/** Compiled statement that can pause. */
export type ExecuteInPieces = (env: Environment, out: Output) => Pieces<Jump>

/** Compiled template. */
export type Program = (context: ReadonlyMap<string, Value>) => Pieces<string>

export function compileTemplate(source: string): Program {
  const body = parse(source)
  const symbols = new Symbols(undefined)
  symbols.analyze(...body)
  if (symbols.loads.some(([, load]) => load.kind === "context" && load.name === "self"))
    unsupported("the variable self")
  const enter = enterScope(symbols)
  const run = compileOuter(body, { symbols, soft: false })
  return function* (context) {
    const out = new Output()
    yield* run(enter(new Environment(context, undefined, 0)), out)
    return out.toString()
  }
}

/** Compiles statements outside of loops and macros. Renders pause in the loops among them, which mostly iterate over messages. */
function compileOuter(body: Body, scope: Scope): ExecuteInPieces {
  const statements = body.map((statement): ExecuteInPieces => {
    if (statement.kind === "For") return compileLoop(statement, scope)
    if (statement.kind === "If") return compileIf(statement, soften(scope), compileOuter)
    const execute = compileStatement(statement, scope)
    // biome-ignore lint/correctness/useYield: it is short
    return function* (env, out) {
      return execute(env, out)
    }
  })
  return function* (env, out) {
    for (const statement of statements) {
      const jump = yield* statement(env, out)
      if (jump !== undefined) return jump
    }
    return undefined
  }
}

export function compileBody(body: Body, scope: Scope): Execute {
  const statements = body.map((statement) => compileStatement(statement, scope))
  return (env, out) => {
    for (const statement of statements) {
      const jump = statement(env, out)
      if (jump !== undefined) return jump
    }
    return undefined
  }
}

/** Scope inside another one, for analyzed nodes. */
export function innerScope(
  outer: Scope,
  body: Body,
  prepare: (symbols: Symbols) => void = () => {},
): Scope & { readonly enter: Enter } {
  const symbols = new Symbols(outer.symbols)
  prepare(symbols)
  symbols.analyze(...body)
  return { symbols, soft: false, enter: enterScope(symbols) }
}

function compileStatement(node: Statement, scope: Scope): Execute {
  switch (node.kind) {
    case "Output":
      return compileOutput(node.parts, scope)
    case "For": {
      const loop = compileLoop(node, scope)
      return (env, out) => atOnce(loop(env, out))
    }
    case "If":
      return compileIf(node, soften(scope), compileBody)
    case "Set": {
      const value = compileExpression(node.value, scope)
      const store = assign(node.target, scope)
      return (env) => store(env, () => value(env))
    }
    case "SetBlock":
      return compileSetBlock(node, scope)
    case "Macro": {
      const make = compileMacro(node, scope, node.name)
      const place = scope.symbols.place(node.name)
      return (env) => void write(env, place, make(env))
    }
    case "CallBlock":
      return compileCallBlock(node, scope)
    case "FilterBlock": {
      const inner = innerScope(scope, node.body)
      const run = compileCaptured(node.body, inner, node.filter)
      return (env, out) => void out.push(outputOf(run(env).value))
    }
    case "With":
      return compileWith(node, scope)
    default: {
      const jump = node.kind === "Break" ? "break" : "continue"
      return () => jump
    }
  }
}

function compileOutput(parts: readonly (string | Expression)[], scope: Scope): Execute {
  const writes = parts.map((part) => (typeof part === "string" ? part : compileExpression(part, scope)))
  return (env, out) => {
    for (const part of writes) out.push(typeof part === "string" ? part : str(part(env)))
    return undefined
  }
}

/** @param compile - compiles the bodies */
function compileIf<Run extends Execute | ExecuteInPieces>(
  node: Statement & { kind: "If" },
  scope: Scope,
  compile: (body: Body, scope: Scope) => Run,
): (env: Environment, out: Output) => ReturnType<Run> {
  const branches = node.branches.map(({ test, body }) => ({
    test: compileExpression(test, scope),
    run: compile(body, scope),
  }))
  const otherwise = compile(node.otherwise, scope)
  return (env, out) => {
    const chosen = branches.find(({ test }) => truthy(test(env)))
    return (chosen?.run ?? otherwise)(env, out) as ReturnType<Run>
  }
}

interface Captured {
  readonly value: Value
  readonly jump: Jump
}

/** Compiles a body whose text is filtered. A jump out of the body drops its text. */
function compileCaptured(
  body: Body,
  scope: Scope & { readonly enter: Enter },
  filter: Expression | undefined,
): (env: Environment) => Captured {
  const run = compileBody(body, scope)
  let text = ""
  const apply = filter && compileFilters(filter, scope, () => text)
  return (env) => {
    const out = new Output()
    const inner = scope.enter(env)
    const jump = run(inner, out)
    if (jump !== undefined) return { value: "", jump }
    text = out.toString()
    return { value: apply === undefined ? text : apply(inner), jump }
  }
}

function compileFilters(node: Expression, scope: Scope, text: Evaluate): Evaluate {
  if (node.kind !== "Filter") return fail("AssertionError", "a block takes filters only")
  const target = node.target === undefined ? text : compileFilters(node.target, scope, text)
  return compileApplied(node, scope, target)
}

function compileSetBlock(node: SetBlock, scope: Scope): Execute {
  const run = compileCaptured(node.body, innerScope(scope, node.body), node.filter)
  const store = assign(node.target, scope)
  return (env) => {
    const { value, jump } = run(env)
    return jump ?? store(env, () => value)
  }
}

function compileWith(node: With, scope: Scope): Execute {
  const inner = innerScope(scope, node.body, (symbols) => symbols.analyze(...node.targets))
  const values = node.values.map((value) => compileExpression(value, scope))
  const stores = node.targets.map((target) => assign(target, inner))
  const run = compileBody(node.body, inner)
  return (env, out) => {
    const opened = inner.enter(env)
    for (const [at, store] of stores.entries()) store(opened, () => (values[at] as Evaluate)(env))
    return run(opened, out)
  }
}

function compileCallBlock(node: CallBlock, scope: Scope): Execute {
  const makeCaller = compileCaller(node, scope)
  if (node.call.kind !== "Call")
    return (env, out) => void out.push(outputOf(call(makeCaller(env), { positional: [], named: new Map() })))
  const target = compileExpression(node.call.target, scope)
  const given = compileArguments(node.call.args, scope)
  return (env, out) => {
    const caller = makeCaller(env)
    const called = target(env)
    const { positional, named } = given(env)
    if (named.has("caller")) fail("TypeError", "got multiple values for keyword argument 'caller'")
    out.push(outputOf(call(called, { positional, named: new Map([...named, ["caller", caller]]) })))
    return undefined
  }
}

/** Output of a call block or filter block, which must be a string. */
function outputOf(value: Value): string {
  if (value instanceof Markup) return value.text
  return typeof value === "string" ? value : fail("TypeError", `expected str instance, ${typeName(value)} found`)
}
