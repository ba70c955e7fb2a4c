import { atOnce } from "../../util/pace.ts"
import { compileTarget } from "./assign.ts"
import { compileBody, type ExecuteInPieces, innerScope } from "./compile.ts"
import { compileExpression, type Evaluate, type Scope } from "./compile-expression.ts"
import { type Environment, Output } from "./environment.ts"
import { LoopContext, type Recurse } from "./loop-context.ts"
import { type Expression, type For, namesRead } from "./nodes.ts"
import { Iter, iterate, truthy, type Value } from "./values.ts"

/** Compiles a loop, which can pause after each iteration unless it is recursive. */
export function compileLoop(node: For, scope: Scope): ExecuteInPieces {
  const iterable = compileExpression(node.iterable, scope)
  const select = compileTest(node, scope)
  const run = compileRounds(node, scope)
  if (!node.recursive) return (env, out) => run(env, out, select(env, iterable(env)), undefined, 0)
  return function* (env, out) {
    const recurse: Recurse = (value, depth) => {
      const inner = new Output()
      atOnce(run(env, inner, select(env, value), recurse, depth))
      return inner.toString()
    }
    out.push(recurse(iterable(env), 0))
    return undefined
  }
}

type Rounds = (
  env: Environment,
  out: Output,
  items: Value,
  recurse: Recurse | undefined,
  depth: number,
) => ReturnType<ExecuteInPieces>

/** Compiles the iterations of a loop, and its else part. */
function compileRounds(node: For, scope: Scope): Rounds {
  const usesLoop = node.recursive || namesRead(node.body, ["loop"]).size > 0
  const inner = innerScope(scope, [], (symbols) => {
    if (usesLoop) symbols.declare("loop")
    analyzeTarget(node.target, symbols)
    symbols.analyze(...node.body)
  })
  const slot = usesLoop ? inner.symbols.place("loop").slot : undefined
  const store = compileTarget(node.target, inner)
  const body = compileBody(node.body, inner)
  const outer = innerScope(scope, node.otherwise)
  const otherwise = compileBody(node.otherwise, outer)
  return function* (env, out, items, recurse, depth) {
    const loop = slot === undefined ? undefined : new LoopContext(items, recurse, depth)
    let completed = false
    for (const item of loop === undefined ? iterate(items) : loop.rounds()) {
      const opened = inner.enter(env)
      if (loop !== undefined) opened.slots[slot as number] = loop
      store(opened, item)
      const jump = body(opened, out)
      if (jump === "break") break
      completed ||= jump === undefined
      yield
    }
    return completed || node.otherwise.length === 0 ? undefined : otherwise(outer.enter(env), out)
  }
}

function analyzeTarget(target: Expression, symbols: Scope["symbols"]): void {
  if (target.kind === "Tuple") for (const item of target.items) analyzeTarget(item, symbols)
  else if (target.kind === "Name") symbols.declare(target.name)
}

/** Compiles the test of a loop: a lazy sequence of the items that pass. */
function compileTest(node: For, scope: Scope): (env: Environment, items: Value) => Value {
  const { test } = node
  if (test === undefined) return (_, items) => items
  const inner = innerScope(scope, [], (symbols) => {
    analyzeTarget(node.target, symbols)
    symbols.analyze(test)
  })
  const store = compileTarget(node.target, inner)
  const passes = compileExpression(test, inner)
  const rebuilt = compileExpression(asRead(node.target), inner)
  return (env, items) => new Iter(passing(iterate(items), inner.enter(env), store, passes, rebuilt))
}

function* passing(
  items: Iterable<Value>,
  env: Environment,
  store: ReturnType<typeof compileTarget>,
  passes: Evaluate,
  rebuilt: Evaluate,
): Generator<Value> {
  for (const item of items) {
    store(env, item)
    if (truthy(passes(env))) yield rebuilt(env)
  }
}

/** Expression that reads a target. */
function asRead(target: Expression): Expression {
  if (target.kind === "Name") return { ...target, role: "load" }
  return target.kind === "Tuple" ? { kind: "Tuple", items: target.items.map(asRead) } : target
}
