import type { Facts } from "./facts.ts"
import { fault, work } from "./fault.ts"
import type { Grammar, Rule } from "./grammar.ts"
import { always, type Binding, type Condition, Query, Slots, unbound } from "./query.ts"
import { readTemplate } from "./template.ts"
import type { Vocabulary } from "./vocabulary.ts"

/** A part of a text, written from the facts and the objects that the narrator's placeholders stand for. */
export type Part = (facts: Facts) => string

interface Choice {
  readonly query: Query | undefined
  readonly parts: readonly Part[]
}

const maxDepth = 50
const maxLength = 2000

/** Writes what the player reads, by the rules of a grammar. Rules are read when first used: real ones hold typos. */
export class Narrator {
  readonly #rules: ReadonlyMap<string, readonly Rule[]>
  readonly #vocabulary: Vocabulary
  readonly #names: ReadonlyMap<string, string>
  /** Two different placeholders never stand for the same object. */
  readonly #slots: Slots
  /** Slots by placeholder, "name:type"; and those of each name, the newest last. */
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

  /** The slot of a placeholder, made where it is new. */
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

  /** Writes a text with placeholders standing for these objects. */
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

  /** A symbol by the first of its rules whose condition holds. */
  derive(symbol: string, facts: Facts): string {
    if (++this.#depth > maxDepth) fault(`the symbol ${symbol} of the grammar leads deeper than ${maxDepth} symbols`)
    const choice = this.#choicesOf(symbol).find(({ query }) => !query || query.match(facts, this.#binding, always))
    const text = this.#write(choice?.parts ?? fault(`no rule of ${symbol} in the grammar applies`), facts)
    this.#depth--
    return text
  }

  /** What the expression gives for every match of the query, in order. */
  all(expression: Part, query: Query, facts: Facts): string[] {
    const texts: string[] = []
    query.match(facts, this.#binding, () => {
      texts.push(expression(facts))
      return false
    })
    return texts
  }

  /** The object that a variable stands for: that of a placeholder of this name. */
  idOf(name: string): string {
    for (const slot of this.#slotsByName.get(name) ?? []) {
      const object = this.#binding[slot]!
      if (object !== unbound) return this.#vocabulary.ids[object]!
    }
    return fault(`the grammar speaks of ${name}, which stands for nothing there`)
  }

  nameOf(id: string): string {
    return this.#names.get(id) ?? ""
  }

  /** Reads `p(x:type) & q(x:type, y:type)`: facts to be matched in the order written. */
  query(text: string): Query {
    const conjuncts = text.length > maxLength ? fault("the grammar asks for too many facts at once") : text.split("&")
    const conditions = conjuncts.map((part): Condition => {
      const [, predicate, list] = /^\s*([\w-]+)\s*\(([^()]*)\)\s*$/.exec(part) ?? fault(`the grammar asks "${text}"`)
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
