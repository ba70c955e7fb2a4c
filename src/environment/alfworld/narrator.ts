import type { Facts } from "./facts.ts"
import { fault, work } from "./fault.ts"
import type { Grammar, Rule } from "./grammar.ts"
import { always, type Binding, type Condition, Query, Slots, unbound } from "./query.ts"
import { readTemplate } from "./template.ts"
import type { Vocabulary } from "./vocabulary.ts"

/** Function that writes a part of a text from the facts and the current objects of the narrator's placeholders. */
export type Part = (facts: Facts) => string

interface Choice {
  readonly query: Query | undefined
  readonly parts: readonly Part[]
}

const maxDepth = 50
const maxLength = 2000

/** Writes observations by the rules of a grammar. Rules are parsed at first use, because real grammars contain typos. */
export class Narrator {
  readonly #rules: ReadonlyMap<string, readonly Rule[]>
  readonly #vocabulary: Vocabulary
  readonly #names: ReadonlyMap<string, string>
  /** Two different placeholders are never bound to the same object. */
  readonly #slots: Slots
  /** Slots by placeholder ("name:type"); a second map has the slots of each name, the newest last. */
  readonly #placeholders = new Map<string, number>()
  readonly #slotsByName = new Map<string, number[]>()
  readonly #choices = new Map<string, Choice[]>()
  readonly #texts = new Map<string, readonly Part[]>()
  readonly #binding: Binding
  #depth = 0

  constructor(grammar: Grammar, vocabulary: Vocabulary, names: ReadonlyMap<string, string>) {
    this.#rules = grammar.rules
    this.#vocabulary = vocabulary
    this.#names = names
    this.#slots = new Slots(vocabulary.ids.length, true)
    this.#binding = this.#slots.free()
  }

  /** Slot of a placeholder, created if new. */
  placeholder(name: string, type: string): number {
    const key = `${name}:${type}`
    let slot = this.#placeholders.get(key)
    if (slot === undefined) {
      slot = this.#slots.add(this.#vocabulary.members(type))
      this.#placeholders.set(key, slot)
      const named = this.#slotsByName.get(name)
      if (named) named.push(slot)
      else this.#slotsByName.set(name, [slot])
    }
    return slot
  }

  /** Writes a text with placeholders bound to these objects. */
  tell(text: string, facts: Facts, placeholders: readonly number[] = [], objects: readonly number[] = []): string {
    this.#binding.fill(unbound)
    this.#depth = 0
    for (const [i, slot] of placeholders.entries()) this.#binding[slot] = objects[i]!
    return this.#write(this.parts(text), facts)
  }

  parts(text: string): readonly Part[] {
    let parts = this.#texts.get(text)
    if (!parts) {
      parts = readTemplate(text, this)
      this.#texts.set(text, parts)
    }
    return parts
  }

  /** Expands a symbol by its first rule whose condition holds. */
  derive(symbol: string, facts: Facts): string {
    if (++this.#depth > maxDepth) fault(`the symbol ${symbol} of the grammar is nested deeper than ${maxDepth} symbols`)
    const choice = this.#choicesOf(symbol).find(({ query }) => !query || query.match(facts, this.#binding, always))
    const text = this.#write(choice?.parts ?? fault(`no rule of ${symbol} in the grammar applies`), facts)
    this.#depth--
    return text
  }

  /** Values of the expression for every match of the query, in order. */
  all(expression: Part, query: Query, facts: Facts): string[] {
    const texts: string[] = []
    query.match(facts, this.#binding, () => {
      texts.push(expression(facts))
      return false
    })
    return texts
  }

  /** Id of the object that the placeholder of this name is bound to. */
  idOf(name: string): string {
    for (const slot of this.#slotsByName.get(name) ?? []) {
      const object = this.#binding[slot]!
      if (object !== unbound) return this.#vocabulary.ids[object]!
    }
    return fault(`the grammar refers to ${name}, which is not bound to an object`)
  }

  nameOf(id: string): string {
    return this.#names.get(id) ?? ""
  }

  /** Parses `p(x:type) & q(x:type, y:type)`. Facts are matched in the written order. */
  query(text: string): Query {
    const conjuncts = text.length > maxLength ? fault("a condition in the grammar is too long") : text.split("&")
    const conditions = conjuncts.map((part): Condition => {
      const [, predicate, list] =
        /^\s*([\w-]+)\s*\(([^()]*)\)\s*$/.exec(part) ?? fault(`the condition "${text}" in the grammar is invalid`)
      const args = list!.trim() === "" ? [] : list!.split(",")
      return {
        kind: "fact",
        predicate: this.#vocabulary.predicate(predicate!, args.length),
        terms: args.map((arg) => {
          const [name, type = name] = arg.split(":").map((word) => word.trim())
          return this.placeholder(name!, type!)
        }),
      }
    })
    return new Query(conditions, this.#slots)
  }

  #choicesOf(symbol: string): Choice[] {
    let choices = this.#choices.get(symbol)
    if (!choices) {
      const rules = this.#rules.get(symbol) ?? fault(`the grammar has no symbol ${symbol}`)
      choices = rules.map(({ condition, rhs }) => ({
        query: condition === undefined ? undefined : this.query(condition),
        parts: this.parts(rhs),
      }))
      this.#choices.set(symbol, choices)
    }
    return choices
  }

  #write(parts: readonly Part[], facts: Facts): string {
    let text = ""
    for (const part of parts) {
      const piece = part(facts)
      work(piece.length + 1)
      text += piece
    }
    return text
  }
}
