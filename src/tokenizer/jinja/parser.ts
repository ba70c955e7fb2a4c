import { fail } from "./errors.ts"
import { tokenize } from "./lexer.ts"
import { type Body, children, type Expression, type Node, type Parameters, type Statement } from "./nodes.ts"
import { parseExpression, parseFilter, parseTuple, type TupleOptions } from "./parse-expression.ts"
import { TokenStream } from "./token-stream.ts"

/** Tags of Jinja2 that need several templates or HTML. */
const refused = ["extends", "include", "import", "from", "block", "autoescape"]

/** Parses a template. Fails if it is not valid Jinja2 or uses unsupported features. */
export function parse(template: string): Body {
  return new Parser(new TokenStream(tokenize(template))).parse()
}

type TargetRole = "store" | "param"

class Parser {
  readonly #stream: TokenStream
  /** Open tags, innermost last. */
  readonly #open: string[] = []
  /** Number of loops that `break` and `continue` can reach; a macro hides outer loops. */
  #loops = 0

  constructor(stream: TokenStream) {
    this.#stream = stream
  }

  parse(): Body {
    return this.#body([])
  }

  /** Statements up to one of the end tags, which is not read. Without end tags, up to the end. */
  #body(ends: readonly string[]): Body {
    const stream = this.#stream
    const body: Statement[] = []
    let parts: (string | Expression)[] = []
    const flush = () => {
      if (parts.length > 0) body.push({ kind: "Output", parts })
      parts = []
    }
    for (;;) {
      if (stream.is("data")) parts.push(stream.next().value)
      else if (stream.is("variable_begin")) {
        stream.next()
        parts.push(parseTuple(stream))
        stream.expect("variable_end")
      } else if (stream.is("block_begin")) {
        flush()
        stream.next()
        if (ends.some((end) => stream.isName(end))) return body
        body.push(this.#statement(ends))
        stream.expect("block_end")
      } else {
        flush()
        if (ends.length > 0) stream.fail(`Unexpected end of template. ${this.#lookingFor(ends)}`)
        return body
      }
    }
  }

  #lookingFor(ends: readonly string[]): string {
    const innermost = this.#open.at(-1)
    const closing = innermost === undefined ? "" : ` The innermost block that needs to be closed is '${innermost}'.`
    return `Jinja was looking for the following tags: ${ends.map((end) => `'${end}'`).join(" or ")}.${closing}`
  }

  /** Reads the body of a tag and its end tag. */
  #block(...ends: readonly string[]): Body {
    this.#stream.skipMark(":")
    this.#stream.expect("block_end")
    return this.#body(ends)
  }

  #closed(end: string): Body {
    const body = this.#block(end)
    this.#stream.next()
    return body
  }

  #statement(ends: readonly string[]): Statement {
    const stream = this.#stream
    if (!stream.is("name")) stream.fail("tag name expected")
    const tag = stream.current.value
    if (refused.includes(tag)) stream.unsupported(`the tag {% ${tag} %}`)
    const parse = this.#tags[tag]
    if (!Object.hasOwn(this.#tags, tag) || parse === undefined)
      return stream.fail(`Encountered unknown tag '${tag}'.${ends.length > 0 ? ` ${this.#lookingFor(ends)}` : ""}`)
    stream.next()
    this.#open.push(tag)
    const statement = parse()
    this.#open.pop()
    return statement
  }

  readonly #tags: Readonly<Record<string, () => Statement>> = {
    for: () => this.#for(),
    if: () => this.#if(),
    set: () => this.#set(),
    with: () => this.#with(),
    macro: () => this.#macro(),
    call: () => this.#call(),
    filter: () => this.#filter(),
    print: () => this.#print(),
    break: () => this.#jump("Break"),
    continue: () => this.#jump("Continue"),
    generation: () => this.#generation(),
  }

  #for(): Statement {
    const stream = this.#stream
    const target = this.#target("store", { end: "in" })
    stream.expect("name", "in")
    const iterable = parseTuple(stream, { withCondition: false, end: "recursive" })
    const test = stream.skipName("if") ? parseExpression(stream) : undefined
    const recursive = stream.skipName("recursive")
    this.#loops++
    const body = this.#block("endfor", "else")
    this.#loops--
    const otherwise = stream.next().value === "else" ? this.#closed("endfor") : []
    const loop: Statement = { kind: "For", target, iterable, body, otherwise, test, recursive }
    if (storesLoop(loop)) stream.fail("Can't assign to special loop variable in for-loop target")
    return loop
  }

  #if(): Statement {
    const stream = this.#stream
    const branches: { test: Expression; body: Body }[] = []
    for (;;) {
      const test = parseTuple(stream, { withCondition: false })
      branches.push({ test, body: this.#block("elif", "else", "endif") })
      const end = stream.next().value
      if (end === "elif") continue
      return { kind: "If", branches, otherwise: end === "else" ? this.#closed("endif") : [] }
    }
  }

  #set(): Statement {
    const target = this.#target("store", { withNamespace: true })
    if (this.#stream.skipMark("=")) return { kind: "Set", target, value: parseTuple(this.#stream) }
    const filter = parseFilter(this.#stream, undefined)
    return { kind: "SetBlock", target, filter, body: this.#closed("endset") }
  }

  #with(): Statement {
    const stream = this.#stream
    const targets: Expression[] = []
    const values: Expression[] = []
    while (!stream.is("block_end")) {
      if (targets.length > 0) stream.expectMark(",")
      targets.push(this.#target("param"))
      stream.expectMark("=")
      values.push(parseExpression(stream))
    }
    return { kind: "With", targets, values, body: this.#closed("endwith") }
  }

  #macro(): Statement {
    const { name } = this.#name("store")
    return { kind: "Macro", name, ...this.#parameters(), body: this.#function("endmacro") }
  }

  #call(): Statement {
    const parameters = this.#stream.isMark("(") ? this.#parameters() : { parameters: [], defaults: [] }
    const call = parseExpression(this.#stream)
    if (call.kind !== "Call") this.#stream.fail("expected call")
    return { kind: "CallBlock", call, ...parameters, body: this.#function("endcall") }
  }

  /** Reads a `generation` block, which marks an assistant completion. Jinja2 renders it as a call of the body. */
  #generation(): Statement {
    const body = this.#function("endgeneration")
    return { kind: "CallBlock", call: { kind: "Generation" }, parameters: [], defaults: [], body }
  }

  #function(end: string): Body {
    const loops = this.#loops
    this.#loops = 0
    const body = this.#closed(end)
    this.#loops = loops
    return body
  }

  #filter(): Statement {
    const filter = parseFilter(this.#stream, undefined, true) as Expression
    return { kind: "FilterBlock", filter, body: this.#closed("endfilter") }
  }

  #print(): Statement {
    const parts: Expression[] = []
    while (!this.#stream.is("block_end")) {
      if (parts.length > 0) this.#stream.expectMark(",")
      parts.push(parseExpression(this.#stream))
    }
    return { kind: "Output", parts }
  }

  #jump(kind: "Break" | "Continue"): Statement {
    if (this.#loops === 0) fail("TemplateSyntaxError", `'${kind.toLowerCase()}' outside loop`)
    return { kind }
  }

  #parameters(): Parameters {
    const stream = this.#stream
    const parameters: Parameters["parameters"][number][] = []
    const defaults: Expression[] = []
    stream.expectMark("(")
    while (!stream.skipMark(")")) {
      if (parameters.length > 0) stream.expectMark(",")
      const parameter = this.#name("param")
      if (parameters.some(({ name }) => name === parameter.name))
        stream.fail(`duplicate argument '${parameter.name}' in function definition`)
      parameters.push(parameter)
      if (stream.skipMark("=")) defaults.push(parseExpression(stream))
      else if (defaults.length > 0) stream.fail("non-default argument follows default argument")
    }
    return { parameters, defaults }
  }

  #name(role: TargetRole): Expression & { readonly kind: "Name" } {
    const name = this.#stream.expect("name").value
    if (/^([Tt]rue|[Ff]alse|[Nn]one)$/.test(name)) this.#stream.fail(`can't assign to 'name'`)
    return { kind: "Name", name, role }
  }

  #target(role: TargetRole, options: TupleOptions = {}): Expression {
    return this.#assignable(parseTuple(this.#stream, { ...options, simple: true }), role)
  }

  #assignable(target: Expression, role: TargetRole): Expression {
    if (target.kind === "Name") return { ...target, role }
    if (target.kind === "NamespaceTarget") return target
    if (target.kind !== "Tuple") return this.#stream.fail(`can't assign to '${target.kind.toLowerCase()}'`)
    return { kind: "Tuple", items: target.items.map((item) => this.#assignable(item, role)) }
  }
}

/** Whether a name `loop` is set anywhere under a node. */
function storesLoop(node: Node): boolean {
  return (node.kind === "Name" && node.role === "store" && node.name === "loop") || children(node).some(storesLoop)
}
