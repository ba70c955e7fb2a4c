import { compileBody, innerScope } from "./compile.ts"
import { compileExpression, type Evaluate, type Scope } from "./compile-expression.ts"
import { Dict } from "./dict.ts"
import { type Environment, Output } from "./environment.ts"
import { fail } from "./errors.ts"
import { type Body, type CallBlock, namesRead, type Parameters } from "./nodes.ts"
import { repr } from "./print.ts"
import { type Arguments, PyObject, Tuple, Undefined, type Value } from "./values.ts"

/** Names of implicit parameters of a macro, which exist if its body reads them. */
const specials = ["caller", "kwargs", "varargs"] as const

type Special = (typeof specials)[number]

interface Shape {
  /** Name of the macro; undefined for the body of a call block. */
  readonly name: string | undefined
  readonly parameters: readonly string[]
  readonly takes: ReadonlySet<Special>
}

/** Macro as a value. */
class Macro extends PyObject {
  readonly typeName = "Macro"
  readonly #shape: Shape
  readonly #run: (values: ReadonlyMap<string, Value>) => string
  constructor(shape: Shape, run: (values: ReadonlyMap<string, Value>) => string) {
    super()
    this.#shape = shape
    this.#run = run
  }
  override attribute(name: string): Value | undefined {
    const { parameters, takes } = this.#shape
    const attributes: Readonly<Record<string, Value>> = {
      name: this.#shape.name ?? null,
      arguments: new Tuple(parameters),
      catch_kwargs: takes.has("kwargs"),
      catch_varargs: takes.has("varargs"),
      caller: takes.has("caller"),
      explicit_caller: parameters.includes("caller"),
    }
    return Object.hasOwn(attributes, name) ? attributes[name] : undefined
  }
  override repr(): string {
    return `<Macro ${this.#shape.name === undefined ? "anonymous" : repr(this.#shape.name)}>`
  }
  override call(args: Arguments): Value {
    return this.#run(bind(this.#shape, args))
  }
}

/** Binds arguments to parameters and implicit parameters; omitted ones are absent. */
function bind({ name, parameters, takes }: Shape, { positional, named }: Arguments): ReadonlyMap<string, Value> {
  const values = new Map<string, Value>()
  const left = new Map(named)
  parameters.forEach((parameter, at) => {
    const value = positional[at] === undefined ? left.get(parameter) : positional[at]
    if (positional[at] === undefined) left.delete(parameter)
    if (value !== undefined) values.set(parameter, value)
  })
  const explicit = parameters.includes("caller")
  if (takes.has("caller") && !explicit) {
    values.set("caller", left.get("caller") ?? new Undefined("No caller defined"))
    left.delete("caller")
  }
  const [unknown] = left.keys()
  if (takes.has("kwargs")) values.set("kwargs", Dict.of(left))
  else if (left.has("caller"))
    fail(
      "TypeError",
      `macro '${name}' was invoked with two values for the special caller argument. This is most likely a bug.`,
    )
  else if (unknown !== undefined) fail("TypeError", `macro '${name}' takes no keyword argument '${unknown}'`)
  if (takes.has("varargs")) values.set("varargs", new Tuple(positional.slice(parameters.length)))
  else if (positional.length > parameters.length)
    fail("TypeError", `macro '${name}' takes not more than ${parameters.length} argument(s)`)
  return values
}

/** Compiles a macro definition. */
export function compileMacro(
  node: Parameters & { body: Body },
  scope: Scope,
  name: string | undefined,
): (env: Environment) => Value {
  const parameters = node.parameters.map((parameter) => parameter.name)
  const read = namesRead(node.body, specials)
  if (read.has("caller")) checkCaller(parameters, node.defaults.length)
  const takes = new Set(
    specials.filter((special) => read.has(special) && (special === "caller" || !parameters.includes(special))),
  )
  const inner = innerScope(scope, [], (symbols) => {
    symbols.analyze(...node.parameters, ...node.defaults, ...node.body)
    for (const special of takes) if (!parameters.includes(special)) symbols.declare(special)
  })
  const names = [...parameters, ...Array.from(takes).filter((special) => !parameters.includes(special))]
  const places = names.map((parameter) => [parameter, inner.symbols.place(parameter).slot] as const)
  const defaults: (readonly [number, Evaluate])[] = parameters.map((parameter, at) => {
    const given = node.defaults[at - parameters.length + node.defaults.length]
    const missing: Evaluate = () => new Undefined(`parameter '${parameter}' was not provided`)
    return [inner.symbols.place(parameter).slot, given === undefined ? missing : compileExpression(given, inner)]
  })
  const run = compileBody(node.body, inner)
  return (env) =>
    new Macro({ name, parameters, takes }, (values) => {
      const opened = inner.enter(env)
      for (const [parameter, slot] of places) opened.slots[slot] = values.get(parameter)
      for (const [slot, evaluate] of defaults)
        if (opened.slots[slot] === undefined) opened.slots[slot] = evaluate(opened)
      const out = new Output()
      run(opened, out)
      return out.toString()
    })
}

function checkCaller(parameters: readonly string[], defaults: number): void {
  const at = parameters.indexOf("caller")
  if (at >= 0 && at < parameters.length - defaults)
    fail(
      "TemplateSyntaxError",
      'When defining macros or call blocks the special "caller" argument must be omitted or be given a default.',
    )
}

/** Compiles the `caller` of a call block. */
export function compileCaller(node: CallBlock, scope: Scope): (env: Environment) => Value {
  return compileMacro(node, scope, undefined)
}
