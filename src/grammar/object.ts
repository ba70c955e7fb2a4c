import { GigpoError } from "../util/errors.ts"
import { character, except } from "./characters.ts"
import { colon, comma, constant, plainRanges, string } from "./json.ts"
import { choice, later, type Node, nothing, optional, type Range, repeat, rule, sequence, text } from "./node.ts"

export interface Property {
  readonly name: string
  readonly value: Node
  readonly required: boolean
}

/** Members beyond the named ones. */
export interface Others {
  /** Default: any string that is no name of a property. */
  readonly key?: Node | undefined
  readonly value: Node
}

/** An object whose properties come in this order, those that are not required or not at all; the others follow. */
export function object(properties: readonly Property[], others?: Others): Node {
  const key = others && (others.key ?? otherKey(properties.map(({ name }) => name)))
  const other = others && sequence(key!, colon, others.value)
  const last = (first: boolean): Node => {
    if (!other) return nothing
    const more = repeat(sequence(comma, other), 0, Number.POSITIVE_INFINITY)
    return first ? optional(sequence(other, more)) : more
  }
  // What may follow where `from` properties are settled, and where nothing was written so far (`first`) or something.
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

/** Characters of a name that others are told apart from. */
const longestName = 200

/** A string that is none of these, without escapes: they could spell one. */
function otherKey(names: readonly string[]): Node {
  if (names.length === 0) return string()
  const long = names.find((name) => name.length > longestName)
  if (long !== undefined)
    throw new GigpoError(
      "BAD_ARGUMENT",
      `Beside additional properties a name may have ${longestName} characters; ${JSON.stringify(long.slice(0, 20))}… has ${long.length}.`,
    )
  const plain = rule(() => repeat(character(plainRanges), 0, Number.POSITIVE_INFINITY))
  // Names that have the same first `depth` characters, and what may follow these.
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
  // Names that must be escaped cannot be spelled without.
  const spelled = names.filter((name) => JSON.stringify(name) === `"${name}"`).map((name) => [...name])
  return sequence(
    text('"'),
    later(() => rest(spelled, 0)),
    text('"'),
  )
}
