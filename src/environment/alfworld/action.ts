import type { ActionSchema } from "./domain.ts"
import { type Facts, put } from "./facts.ts"
import { fault, work } from "./fault.ts"
import { atomOf, type Branch, branchesOf, extend, planQuery, type Scope } from "./formula.ts"
import { type Binding, type Condition, encode, type Query, Slots, type Term, unbound } from "./query.ts"
import { asList, type Expression, readTyped } from "./s-expression.ts"
import type { Vocabulary } from "./vocabulary.ts"

/** Fact that an action adds or removes. */
interface Effect {
  readonly present: boolean
  readonly predicate: number
  /** Predicate of texts for the removed fact. */
  readonly opposite: number
  readonly terms: readonly Term[]
  /** Conditions of the effect, which applies for every match. Always applies if undefined. Evaluated before any change. */
  readonly when?: readonly Query[]
}

interface Change {
  readonly effect: Effect
  readonly fact: number
}

/** Action of the domain, compiled for the objects of a game. */
export class Action {
  readonly schema: ActionSchema
  readonly #slots: Slots
  readonly #binding: Binding
  readonly #effects: readonly Effect[]
  readonly #ways: readonly { readonly query: Query; readonly mayBeIdle: boolean }[]

  constructor(schema: ActionSchema, vocabulary: Vocabulary, counts: ReadonlyMap<number, number>) {
    this.schema = schema
    this.#slots = new Slots(vocabulary.ids.length, false)
    this.#binding = this.#slots.free()
    const outer: Scope = { vocabulary, slots: this.#slots, variables: new Map() }
    const { scope, added } = extend(outer, schema.parameters)
    this.#effects = effectsOf(schema.effect, scope, counts)
    this.#ways = branchesOf(schema.precondition, scope).map((branch) => ({
      query: planQuery(branch, this.#slots, counts, added),
      mayBeIdle: this.#effects.every((effect) => this.#mayBeImplied(effect, branch)),
    }))
  }

  /** Predicates that the action can make true. */
  get makes(): readonly number[] {
    return this.#effects.filter(({ present }) => present).map(({ predicate }) => predicate)
  }

  /** Predicates that decide where the action is applicable and what it changes. */
  get reads(): readonly number[] {
    const queries = [...this.#ways.map(({ query }) => query), ...this.#effects.flatMap(({ when = [] }) => when)]
    return queries.flatMap(({ reads }) => reads)
  }

  /** Calls `visit` with all arguments for which the action is applicable. The same arguments may occur twice. */
  each(facts: Facts, visit: (args: readonly number[]) => void): void {
    const binding = this.#binding.fill(unbound)
    for (const { query, mayBeIdle } of this.#ways) {
      query.match(facts, binding, () => {
        if (!mayBeIdle || !this.#isIdle(query.conditions, binding)) {
          visit(Array.from(binding.subarray(0, this.schema.parameters.length)))
        }
        return false
      })
    }
  }

  /** Facts after the action. */
  apply(facts: Facts, args: readonly number[]): Facts {
    const binding = this.#binding.fill(unbound)
    binding.set(args)
    const changes: Change[] = []
    for (const effect of this.#effects) {
      const note = () => {
        changes.push({ effect, fact: encode(effect.terms, binding, this.#slots.base) })
        return false
      }
      if (!effect.when) note()
      else for (const query of effect.when) query.match(facts, binding, note)
    }
    const next = facts.slice()
    for (const { effect, fact } of changes) {
      if (!effect.present && isMade(changes, effect.predicate, fact)) continue
      put(next, effect.predicate, fact, effect.present)
      put(next, effect.opposite, fact, !effect.present)
    }
    return next
  }

  /** Whether the conditions could imply an effect, judged by predicates only. */
  #mayBeImplied(effect: Effect, { conditions }: Branch): boolean {
    if (effect.terms.some((term) => term >= this.schema.parameters.length)) return false
    return (
      conditions.some((condition) => condition.kind === saysOf(effect) && condition.predicate === effect.predicate) ||
      (!effect.present && this.#effects.some((other) => other.present && other.predicate === effect.predicate))
    )
  }

  /**
   * Whether the conditions already imply every effect. ALFWorld's planner drops such actions when it reads the game, for example going to
   * the current location.
   */
  #isIdle(conditions: readonly Condition[], binding: Binding): boolean {
    const factOf = (terms: readonly Term[]) => encode(terms, binding, this.#slots.base)
    const changes = this.#effects.map((effect) => ({ effect, fact: factOf(effect.terms) }))
    const sure = changes.filter(({ effect }) => !effect.when)
    return changes.every(
      ({ effect, fact }) =>
        conditions.some(
          (one) => one.kind === saysOf(effect) && one.predicate === effect.predicate && factOf(one.terms) === fact,
        ) ||
        (!effect.present && isMade(sure, effect.predicate, fact)),
    )
  }
}

/** Kind of condition that implies an effect. */
function saysOf(effect: Effect): "fact" | "no fact" {
  return effect.present ? "fact" : "no fact"
}

/** Whether changes add a fact. A fact that is both added and removed is added. */
function isMade(changes: readonly Change[], predicate: number, fact: number): boolean {
  work(changes.length)
  return changes.some(
    (change) => change.effect.present && change.effect.predicate === predicate && change.fact === fact,
  )
}

function effectsOf(
  expression: Expression,
  scope: Scope,
  counts: ReadonlyMap<number, number>,
  variables: readonly number[] = [],
  when: Expression = [],
): Effect[] {
  const [head, ...rest] = asList(expression, "an effect")
  switch (head) {
    case undefined:
    case "increase": // costs
      return []
    case "and":
      return rest.flatMap((part) => effectsOf(part, scope, counts, variables, when))
    case "forall": {
      const inner = extend(scope, readTyped(asList(rest[0], "the variables of forall"), "forall"))
      return effectsOf(rest[1] ?? [], inner.scope, counts, [...variables, ...inner.added], when)
    }
    case "when":
      return effectsOf(rest[1] ?? [], scope, counts, variables, ["and", when, rest[0] ?? []])
    default: {
      const present = head !== "not"
      const atom = (present ? expression : rest[0]) ?? fault("(not) in an effect lacks its fact")
      const { predicate, terms } = atomOf(atom, scope)
      const opposite = scope.vocabulary.predicate(`not_${asList(atom, "a fact")[0]}`, terms.length)
      const always = variables.length === 0 && asList(when, "a condition").length === 0
      if (always) return [{ present, predicate, opposite, terms }]
      const queries = branchesOf(when, scope).map((branch) => planQuery(branch, scope.slots, counts, variables))
      return [{ present, predicate, opposite, terms, when: queries }]
    }
  }
}
