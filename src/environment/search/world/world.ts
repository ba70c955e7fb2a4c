import { Random } from "../../../random.ts"
import { type Kind, kindNames, kinds } from "./kinds.ts"
import { makeNames } from "./names.ts"

export interface Entity {
  readonly name: string
  readonly kind: Kind
  /** What is true of it, by relation: the name of another entity, or a word. One value each, so every answer is unique. */
  readonly facts: Readonly<Record<string, string>>
}

export type World = ReadonlyMap<string, Entity>

/** Invents a world: about as many entities of each kind, linked at random. The same seed gives the same world. */
export function makeWorld(size: number, seed: number): World {
  const random = new Random(seed).fork("search world")
  const names = makeNames(Math.ceil(size / kindNames.length), random.fork("names"))
  const world = new Map<string, Entity>()
  for (let i = 0; i < size; i++) {
    const kind = kindNames[i % kindNames.length]!
    const name = names[kind][Math.floor(i / kindNames.length)]!
    const draw = random.fork("facts", i)
    const facts: Record<string, string> = {}
    for (const [relation, { to }] of Object.entries(kinds[kind].relations)) {
      const values = typeof to === "string" ? names[to].slice(0, countOf(to, size)) : to
      facts[relation] = values[draw.below(values.length)]!
    }
    world.set(name, { name, kind, facts })
  }
  return world
}

/** How many of `size` entities are of this kind. */
function countOf(kind: Kind, size: number): number {
  return Math.ceil((size - kindNames.indexOf(kind)) / kindNames.length)
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
