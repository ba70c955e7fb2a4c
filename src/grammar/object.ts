import { GigpoError } from "../util/errors.ts"
import { character, except } from "./characters.ts"
import { colon, comma, constant, plainRanges, string } from "./json.ts"
import { choice, later, type Node, nothing, optional, type Range, repeat, rule, sequence, text } from "./node.ts"

export interface Property {
  readonly name: string
  readonly value: Node
  readonly required: boolean
}

/** Additional properties. */
export interface Others {
  /** Grammar of the key. Default: any string other than the names of the properties. */
  readonly key?: Node | undefined
  readonly value: Node
}

/** Object with properties in a fixed order, of which some are optional, followed by additional properties. */
export function object(properties: readonly Property[], others?: Others): Node {
  const key = others && (others.key ?? otherKey(properties.map(({ name }) => name)))
  const other = others && sequence(key!, colon, others.value)
  const last = (first: boolean): Node => {
    if (!other) return nothing
    const more = repeat(sequence(comma, other), 0, Number.POSITIVE_INFINITY)
    return first ? optional(sequence(other, more)) : more
  }
  // Continuations from the current property on, after at least one member (`begun`) or none (`fresh`).
  let [begun, fresh] = [last(false), last(true)]
  for (const { name, value, required } of properties.toReversed()) {
    const member = rule(() => sequence(constant(name), colon, value))
    const [after, still] = [shared(begun), fresh]
    const [next, firstly] = [sequence(comma, member, after), sequence(member, after)]
    begun = required ? next : choice([next, after])
    fresh = required ? firstly : choice([firstly, shared(still)])
  }
  return sequence(text("{"), fresh, text("}"))
}

function shared(node: Node): Node {
  return node.kind === "rule" || (node.kind === "sequence" && node.parts.length === 0) ? node : rule(() => node)
}

/** Maximum length of a property name in an object with additional properties. */
const longestName = 200

/** Key other than the given names. Escapes are excluded, because they could spell a name. */
function otherKey(names: readonly string[]): Node {
  if (names.length === 0) return string()
  const long = names.find((name) => name.length > longestName)
  if (long !== undefined)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `With additional properties a name may have at most ${longestName} characters; ${JSON.stringify(long.slice(0, 20))}… has ${long.length}.`,
    )
  const plain = rule(() => repeat(character(plainRanges), 0, Number.POSITIVE_INFINITY))
  // Continuations after the first `depth` characters, which the names in `alike` have in common.
  const rest = (alike: readonly (readonly string[])[], depth: number): Node => {
    const next = new Map<string, (readonly string[])[]>()
    for (const name of alike) {
      const char = name[depth]
      if (char === undefined) continue
      const same = next.get(char)
      if (same) same.push(name)
      else next.set(char, [name])
    }
    const points = [...next.keys()].map((char): Range => [char.codePointAt(0)!, char.codePointAt(0)!])
    const strange = except([...except(plainRanges), ...points])
    return choice([
      ...(alike.some(({ length }) => length === depth) ? [] : [nothing]),
      sequence(character(strange), plain),
      ...[...next].map(([char, names]) =>
        sequence(
          text(char),
          later(() => rest(names, depth + 1)),
        ),
      ),
    ])
  }
  // Names that need escapes cannot be written without them, so they need no check.
  const spelled = names.filter((name) => JSON.stringify(name) === `"${name}"`).map((name) => [...name])
  return sequence(
    text('"'),
    later(() => rest(spelled, 0)),
    text('"'),
  )
}
