import type { Value } from "./values.ts"

/** Arguments of a call, a filter or a test. */
export interface CallArguments {
  readonly positional: readonly Expression[]
  readonly named: readonly { readonly name: string; readonly value: Expression }[]
  readonly rest: Expression | undefined
  readonly namedRest: Expression | undefined
}

export type Expression =
  | { readonly kind: "Constant"; readonly value: Value }
  | { readonly kind: "Name"; readonly name: string; readonly role: "load" | "store" | "param" }
  | { readonly kind: "NamespaceTarget"; readonly name: string; readonly attribute: string }
  | { readonly kind: "Tuple" | "List"; readonly items: readonly Expression[] }
  | { readonly kind: "Dict"; readonly pairs: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: "Unary"; readonly operator: "+" | "-" | "not"; readonly operand: Expression }
  | {
      readonly kind: "Binary"
      readonly operator: BinaryOperator
      readonly left: Expression
      readonly right: Expression
    }
  | { readonly kind: "Concat"; readonly items: readonly Expression[] }
  | { readonly kind: "Compare"; readonly first: Expression; readonly rest: readonly Operand[] }
  | Conditional
  | { readonly kind: "Attribute"; readonly target: Expression; readonly name: string }
  | { readonly kind: "Item"; readonly target: Expression; readonly key: Expression }
  | ({ readonly kind: "Slice"; readonly target: Expression } & SliceBounds)
  | { readonly kind: "Call"; readonly target: Expression; readonly args: CallArguments }
  | { readonly kind: "Generation" }
  | Applied

/** Filter or test. The `target` of a filter on a block is undefined. */
export interface Applied {
  readonly kind: "Filter" | "Test"
  readonly name: string
  readonly target: Expression | undefined
  readonly args: CallArguments
}

export interface Conditional {
  readonly kind: "Conditional"
  readonly test: Expression
  readonly value: Expression
  readonly otherwise: Expression | undefined
  readonly line: number
}

export interface SliceBounds {
  readonly start: Expression | undefined
  readonly stop: Expression | undefined
  readonly stride: Expression | undefined
}

export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**" | "and" | "or"

export interface Operand {
  readonly operator: "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in"
  readonly value: Expression
}

export interface Parameters {
  /** Parameters as assignment targets. */
  readonly parameters: readonly (Expression & { readonly kind: "Name" })[]
  /** Defaults of the last parameters. */
  readonly defaults: readonly Expression[]
}

export type Body = readonly Statement[]

export type Statement =
  | { readonly kind: "Output"; readonly parts: readonly (string | Expression)[] }
  | For
  | { readonly kind: "If"; readonly branches: readonly Branch[]; readonly otherwise: Body }
  | { readonly kind: "Set"; readonly target: Expression; readonly value: Expression }
  | SetBlock
  | ({ readonly kind: "Macro"; readonly name: string; readonly body: Body } & Parameters)
  | CallBlock
  | { readonly kind: "FilterBlock"; readonly filter: Expression; readonly body: Body }
  | With
  | { readonly kind: "Break" | "Continue" }

export interface Branch {
  readonly test: Expression
  readonly body: Body
}

export interface For {
  readonly kind: "For"
  readonly target: Expression
  readonly iterable: Expression
  readonly body: Body
  readonly otherwise: Body
  readonly test: Expression | undefined
  readonly recursive: boolean
}

export interface SetBlock {
  readonly kind: "SetBlock"
  readonly target: Expression
  readonly filter: Expression | undefined
  readonly body: Body
}

export interface CallBlock extends Parameters {
  readonly kind: "CallBlock"
  readonly call: Expression
  readonly body: Body
}

export interface With {
  readonly kind: "With"
  readonly targets: readonly Expression[]
  readonly values: readonly Expression[]
  readonly body: Body
}

export type Node = Expression | Statement

/** Child nodes in the order in which Jinja2 visits them. */
export function children(node: Node): readonly Node[] {
  const given = (...nodes: (Node | undefined)[]) => nodes.filter((child) => child !== undefined)
  const args = ({ positional, named, rest, namedRest }: CallArguments) => [
    ...positional,
    ...named.map(({ value }) => value),
    ...given(rest, namedRest),
  ]
  switch (node.kind) {
    case "Tuple":
    case "List":
    case "Concat":
      return node.items
    case "Dict":
      return node.pairs.flat()
    case "Unary":
      return [node.operand]
    case "Binary":
      return [node.left, node.right]
    case "Compare":
      return [node.first, ...node.rest.map(({ value }) => value)]
    case "Conditional":
      return given(node.test, node.value, node.otherwise)
    case "Attribute":
      return [node.target]
    case "Item":
      return [node.target, node.key]
    case "Slice":
      return given(node.target, node.start, node.stop, node.stride)
    case "Call":
      return [node.target, ...args(node.args)]
    case "Filter":
    case "Test":
      return [...given(node.target), ...args(node.args)]
    case "Output":
      return node.parts.filter((part) => typeof part !== "string")
    case "For":
      return [node.target, node.iterable, ...node.body, ...node.otherwise, ...given(node.test)]
    case "If":
      return [...node.branches.flatMap(({ test, body }) => [test, ...body]), ...node.otherwise]
    case "Set":
      return [node.target, node.value]
    case "SetBlock":
      return [node.target, ...given(node.filter), ...node.body]
    case "Macro":
      return [...node.parameters, ...node.defaults, ...node.body]
    case "CallBlock":
      return [node.call, ...node.parameters, ...node.defaults, ...node.body]
    case "FilterBlock":
      return [...node.body, node.filter]
    case "With":
      return [...node.targets, ...node.values, ...node.body]
    default:
      return []
  }
}

/** Whether Jinja2 may evaluate an expression at compile time. */
export function isConstant(node: Node): boolean {
  return node.kind !== "Name" && node.kind !== "Call" && children(node).every(isConstant)
}

/** Subset of names that the nodes read before setting them. */
export function namesRead(nodes: readonly Node[], names: readonly string[]): ReadonlySet<string> {
  const open = new Set(names)
  const read = new Set<string>()
  const visit = (node: Node): void => {
    if (node.kind !== "Name") children(node).forEach(visit)
    else if (node.role === "load" && open.has(node.name)) read.add(node.name)
    else if (node.role !== "load") open.delete(node.name)
  }
  nodes.forEach(visit)
  return read
}
