import { fault, work } from "./fault.ts"
import { type Condition, Query, type Slots, type Term } from "./query.ts"
import { asList, asWord, type Expression, readTyped, type Typed } from "./s-expression.ts"
import type { Vocabulary } from "./vocabulary.ts"

/** Scope of a formula: vocabulary, slots and the slots of its variables. */
export interface Scope {
  readonly vocabulary: Vocabulary
  readonly slots: Slots
  readonly variables: ReadonlyMap<string, number>
}

/** Conjunction of a formula in disjunctive normal form: conditions over the scope's variables and further ones. */
export interface Branch {
  readonly conditions: readonly Condition[]
  readonly variables: readonly number[]
}

const maxBranches = 128
const maxConditions = 200

/** Adds variables to a scope; returns the new scope and the slots of the variables. */
export function extend(scope: Scope, typed: readonly Typed[]): { scope: Scope; added: number[] } {
  const variables = new Map(scope.variables)
  const added = typed.map(({ name, type }) => {
    const slot = scope.slots.add(scope.vocabulary.members(type))
    variables.set(name, slot)
    return slot
  })
  return { scope: { ...scope, variables }, added }
}

/**
 * Branches of a formula (its disjunctive normal form), or of its negation if `wanted` is false. ALFWorld's planner splits actions in the same
 * way and may drop some of the branches.
 */
export function branchesOf(formula: Expression, scope: Scope, wanted = true): readonly Branch[] {
  const [head, ...rest] = asList(formula, "a condition")
  switch (head) {
    case undefined:
      return wanted ? [{ conditions: [], variables: [] }] : []
    case "and":
    case "or": {
      const parts = rest.map((part) => branchesOf(part, scope, wanted))
      return (head === "and") === wanted ? product(parts) : bounded(parts.flat())
    }
    case "imply":
      return branchesOf(["or", ["not", rest[0] ?? []], rest[1] ?? []], scope, wanted)
    case "not":
      return branchesOf(rest[0] ?? [], scope, !wanted)
    case "exists":
    case "forall": {
      const inner = extend(scope, readTyped(asList(rest[0], `the variables of ${head}`), head))
      if ((head === "exists") === wanted) {
        const branches = branchesOf(rest[1] ?? [], inner.scope, wanted)
        return branches.map((branch) => ({ ...branch, variables: [...branch.variables, ...inner.added] }))
      }
      // "forall x: P" is equivalent to "there is no x with not P".
      const counterexamples = branchesOf(rest[1] ?? [], inner.scope, !wanted)
      const queries = counterexamples.map((branch) =>
        planQuery({ ...branch, variables: [...branch.variables, ...inner.added] }, scope.slots, new Map()),
      )
      const terms = counterexamples.flatMap((branch) => branch.conditions.flatMap((condition) => condition.terms))
      return single({ kind: "none", queries, terms })
    }
    case "=": {
      const [left, right] = rest.map((word) => termOf(word, scope))
      if (left === undefined || right === undefined) fault("= takes two objects")
      return single({ kind: wanted ? "equal" : "unequal", terms: [left, right] })
    }
    default:
      return single({ kind: wanted ? "fact" : "no fact", ...atomOf(formula, scope) })
  }
}

export function atomOf(formula: Expression, scope: Scope): { predicate: number; terms: readonly Term[] } {
  const [head, ...rest] = asList(formula, "a fact")
  const name = asWord(head, "the predicate of a fact")
  return {
    predicate: scope.vocabulary.declared(name, rest.length),
    terms: rest.map((word) => termOf(word, scope)),
  }
}

function termOf(expression: Expression, scope: Scope): Term {
  const word = asWord(expression, "every argument of a fact")
  if (!word.startsWith("?")) return ~scope.vocabulary.object(word)
  return scope.variables.get(word) ?? fault(`the variable ${word} is not declared`)
}

/**
 * Orders the conditions of a branch: tests as soon as their variables are bound, then the facts with the fewest expected matches, then the
 * objects of a type for variables that no fact binds.
 *
 * @param counts - number of facts of each predicate at the start
 * @param parameters - slots that must be bound in addition to those of the branch
 */
export function planQuery(
  branch: Branch,
  slots: Slots,
  counts: ReadonlyMap<number, number>,
  parameters: readonly number[] = [],
): Query {
  const open = new Set([...parameters, ...branch.variables])
  const left = [...branch.conditions]
  const planned: Condition[] = []
  const expected = ({ kind, predicate, terms }: Condition & { readonly predicate?: number }): number => {
    let free = 0
    for (const term of terms) if (open.has(term)) free++
    if (free === 0) return -1
    if (kind !== "fact") return Number.POSITIVE_INFINITY
    // Assumes that each bound argument reduces the number of matches equally.
    return (counts.get(predicate!) ?? 0) ** (free / terms.length)
  }
  while (left.length > 0 || open.size > 0) {
    work(left.length)
    let [best, fewest] = [-1, Number.POSITIVE_INFINITY]
    for (const [index, condition] of left.entries()) {
      const count = expected(condition)
      if (count < fewest) [best, fewest] = [index, count]
    }
    if (best >= 0) {
      const [next] = left.splice(best, 1)
      planned.push(next!)
      for (const term of next!.terms) open.delete(term)
    } else {
      const [slot] = open
      if (slot === undefined) throw new Error("a condition refers to a variable outside its scope")
      planned.push({ kind: "object", terms: [slot] })
      open.delete(slot)
    }
  }
  return new Query(planned, slots)
}

function single(condition: Condition): Branch[] {
  return [{ conditions: [condition], variables: [] }]
}

function product(parts: readonly (readonly Branch[])[]): readonly Branch[] {
  return parts.reduce<readonly Branch[]>(
    (all, part) =>
      bounded(
        all.flatMap((one) =>
          part.map((other) => ({
            conditions: [...one.conditions, ...other.conditions],
            variables: [...one.variables, ...other.variables],
          })),
        ),
      ),
    [{ conditions: [], variables: [] }],
  )
}

function bounded(branches: readonly Branch[]): readonly Branch[] {
  if (branches.length > maxBranches) fault(`a condition splits into more than ${maxBranches} cases`)
  for (const { conditions } of branches) {
    work(conditions.length)
    if (conditions.length > maxConditions) fault(`a condition has more than ${maxConditions} parts`)
  }
  return branches
}
