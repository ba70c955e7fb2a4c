import { fault } from "./fault.ts"
import { asList, asWord, type Expression, readExpression, readTyped, type Typed } from "./s-expression.ts"

/** Action schema of PDDL. */
export interface ActionSchema {
  readonly name: string
  readonly parameters: readonly Typed[]
  readonly precondition: Expression
  readonly effect: Expression
}

export interface Domain {
  /** Supertype of each type. */
  readonly parents: ReadonlyMap<string, string>
  readonly constants: readonly Typed[]
  /** Number of arguments of each predicate. */
  readonly predicates: ReadonlyMap<string, number>
  readonly actions: readonly ActionSchema[]
}

// Every game contains its domain, and nearly all domains are equal.
const cache = new Map<string, Domain>()
const cacheSize = 8

export function readDomain(text: string): Domain {
  let domain = cache.get(text)
  if (!domain) {
    domain = parse(text)
    if (cache.size === cacheSize) cache.delete(cache.keys().next().value!)
    cache.set(text, domain)
  }
  return domain
}

function parse(text: string): Domain {
  const parents = new Map<string, string>()
  const constants: Typed[] = []
  const predicates = new Map<string, number>()
  const actions: ActionSchema[] = []
  const sections = asList(readExpression(text, "pddl_domain"), "pddl_domain")
  for (const section of sections.slice(sections[0] === "define" ? 2 : fault('pddl_domain must start with "(define"'))) {
    const [keyword, ...rest] = asList(section, "every section of pddl_domain")
    if (keyword === ":types") for (const { name, type } of readTyped(rest, ":types")) parents.set(name, type)
    else if (keyword === ":constants") constants.push(...readTyped(rest, ":constants"))
    else if (keyword === ":predicates") for (const one of rest) predicates.set(...readPredicate(one))
    else if (keyword === ":action") actions.push(readAction(rest))
    else if (keyword === ":derived") fault("pddl_domain has :derived predicates, which are not supported")
  }
  if (parents.size > 1000) fault("pddl_domain declares more than 1000 types")
  return { parents, constants, predicates, actions }
}

function readPredicate(expression: Expression): [name: string, arity: number] {
  const [name, ...parameters] = asList(expression, "every entry of :predicates")
  return [asWord(name, "the name of a predicate"), readTyped(parameters, ":predicates").length]
}

function readAction([name, ...rest]: readonly Expression[]): ActionSchema {
  const action = asWord(name, "the name of an :action")
  const field = (key: string): Expression => {
    const at = rest.indexOf(key)
    return at < 0 ? [] : (rest[at + 1] ?? fault(`${key} of the action ${action} is missing`))
  }
  return {
    name: action,
    parameters: readTyped(asList(field(":parameters"), `:parameters of ${action}`), `:parameters of ${action}`),
    precondition: field(":precondition"),
    effect: field(":effect"),
  }
}
