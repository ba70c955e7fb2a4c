import { Pace } from "../../../util/pace.ts"
import { Random } from "../../../util/random.ts"
import { type Kind, kindNames, kinds } from "./kinds.ts"
import { makeNames } from "./names.ts"

export interface Entity {
  readonly name: string
  readonly kind: Kind
  /** What is true of it, by relation: the name of another entity, or a word. One value each, so every answer is unique. */
  readonly facts: Readonly<Record<string, string>>
}

export type World = ReadonlyMap<string, Entity>

/**
 * Invents a world: about as many entities of each kind, linked at random. The same size, seed and number give the same world; worlds
 * of one size and seed have the same names, and by their numbers different facts.
 */
export async function makeWorld(
  size: number,
  seed: number,
  { number = 0, signal }: { readonly number?: number; readonly signal?: AbortSignal | undefined } = {},
): Promise<World> {
  signal?.throwIfAborted()
  const random = new Random(seed).fork("search world")
  const countOf = (kind: Kind) => Math.ceil((size - kindNames.indexOf(kind)) / kindNames.length)
  const names = makeNames(countOf, random.fork("names"))
  const draw = number === 0 ? random.fork("facts") : random.fork("facts", number)
  const pace = new Pace(signal)
  const world = new Map<string, Entity>()
  for (const kind of kindNames) {
    const relations = Object.entries(kinds[kind].relations)
    for (const name of names[kind]) {
      const facts = relations.map(([relation, { to }]) => {
        const values = typeof to === "string" ? names[to] : to
        return [relation, values[draw.below(values.length)]!]
      })
      world.set(name, { name, kind, facts: Object.fromEntries(facts) })
      if (pace.due()) await pace.rest()
    }
  }
  return world
}

/** The entity's passage: its name in quotes as the title, then what is told of it. */
export function passageOf({ name, kind, facts }: Entity): string {
  const text = kinds[kind].passage.replace(/\{(\w+)\}/g, (_, key: string) => (key === "name" ? name : facts[key]!))
  return `"${name}"\n${text}`
}

/** Reads a fact out of the text of an entity's passage; `undefined` where it does not say. */
export function readFact(text: string, name: string, relation: string): string | undefined {
  for (const kind of kindNames) {
    if (!Object.hasOwn(kinds[kind].relations, relation)) continue
    const pattern = quote(kinds[kind].passage).replace(/\\\{(\w+)\\\}/g, (_, key: string) => {
      if (key === "name") return quote(name)
      return key === relation ? "([\\w ]+?)" : "[\\w ]+?"
    })
    const found = new RegExp(`^${pattern}$`).exec(text)
    if (found) return found[1]
  }
  return undefined
}

function quote(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
}
