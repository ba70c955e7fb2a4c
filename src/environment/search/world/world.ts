import { Pace } from "../../../util/pace.ts"
import { Random } from "../../../util/random.ts"
import { type Kind, kindNames, kinds } from "./kinds.ts"
import { makeNames } from "./names.ts"

export interface Entity {
  readonly name: string
  readonly kind: Kind
  /** Facts by relation: the name of another entity, or a word. One value per relation, so every answer is unique. */
  readonly facts: Readonly<Record<string, string>>
}

export type World = ReadonlyMap<string, Entity>

/**
 * Generates a world with about equally many entities of each kind, linked at random. Equal size, seed and number give the same world.
 * Worlds of equal size and seed have the same names, and different facts for different numbers.
 */
export async function makeWorld(
  size: number,
  seed: number,
  { number = 0, signal }: { readonly number?: number; readonly signal?: AbortSignal | undefined } = {},
): Promise<World> {
  signal?.throwIfAborted()
  const random = new Random(seed).derive("search world")
  const countOf = (kind: Kind) => Math.ceil((size - kindNames.indexOf(kind)) / kindNames.length)
  const names = makeNames(countOf, random.derive("names"))
  const draw = number === 0 ? random.derive("facts") : random.derive("facts", number)
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

/** Passage of an entity: its name in quotes as the title, then its facts. */
export function passageOf({ name, kind, facts }: Entity): string {
  const text = kinds[kind].passage.replace(/\{(\w+)\}/g, (_, key: string) => (key === "name" ? name : facts[key]!))
  return `"${name}"\n${text}`
}

/** Reads a fact from the text of an entity's passage; `undefined` if the text does not contain it. */
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
