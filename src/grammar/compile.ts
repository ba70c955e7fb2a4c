import { GigpoError } from "../errors.ts"
import type { Node, Range } from "./node.ts"

/** What the core runs (core/grammar/grammar.h): instructions of three numbers each, and sets of bytes of 256 bits each. */
export interface Program {
  readonly instructions: Int32Array
  readonly sets: Uint8Array
}

/** Most instructions: some 2 MB. */
const most = 2 ** 17

const operations = { match: 0, either: 1, call: 2, end: 3 } as const

/** @throws GigpoError `BAD_ARGUMENT` where it would be too long: repetitions with bounds are written out. */
export function compile(root: Node): Program {
  const code: number[] = []
  const sets = new Map<string, number>()
  const rules = new Map<Node, number>()
  const waiting: { readonly at: number; readonly node: Node }[] = []

  const emit = (operation: keyof typeof operations, a = 0, b = 0): number => {
    if (code.length >= 3 * most)
      throw new GigpoError(
        "BAD_ARGUMENT",
        `This grammar takes more than ${most} instructions: bounds of lengths and numbers of items are written out, so give smaller ones, or none.`,
      )
    code.push(operations[operation], a, b)
    return code.length / 3 - 1
  }
  const either = (a: number, b: number) => (a === b ? a : emit("either", a, b))
  const set = (ranges: readonly Range[]): number => {
    const key = JSON.stringify(ranges)
    const known = sets.get(key)
    if (known === undefined) sets.set(key, sets.size)
    return known ?? sets.size - 1
  }

  /** Where a text of this node begins, after which the program goes on at `then`. */
  const lay = (node: Node, then: number): number => {
    switch (node.kind) {
      case "bytes":
        return emit("match", set(node.ranges), then)
      case "sequence":
        return node.parts.reduceRight((next, part) => lay(part, next), then)
      case "choice": {
        if (node.parts.length === 0) return emit("match", set([]), then)
        return node.parts.map((part) => lay(part, then)).reduceRight((others, one) => either(one, others))
      }
      case "repeat":
        return layRepeat(node, then)
      case "rule": {
        let at = rules.get(node)
        if (at === undefined) {
          at = emit("either") // filled in once it is laid
          rules.set(node, at)
          waiting.push({ at, node: node.node() })
        }
        return emit("call", at, then)
      }
    }
  }
  const layRepeat = ({ part, least, most }: Extract<Node, { kind: "repeat" }>, then: number): number => {
    let begin = then
    if (most === Number.POSITIVE_INFINITY) {
      begin = emit("either", 0, then)
      code[3 * begin + 1] = lay(part, begin)
    } else begin = times(most - least, begin, (next) => either(lay(part, next), then))
    return times(least, begin, (next) => lay(part, next))
  }

  waiting.push({ at: emit("either"), node: root })
  const finish = emit("end")
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const begin = lay(next.node, finish)
    code[3 * next.at + 1] = code[3 * next.at + 2] = begin
  }
  return { instructions: Int32Array.from(code), sets: bits([...sets.keys()]) }
}

/** `before` so many times; once it adds nothing (a part without bytes) it never will. */
function times(count: number, end: number, before: (next: number) => number): number {
  let at = end
  for (let i = 0; i < count; i++) {
    const next = before(at)
    if (next === at) break
    at = next
  }
  return at
}

function bits(keys: readonly string[]): Uint8Array {
  const all = new Uint8Array(32 * keys.length)
  for (const [index, key] of keys.entries())
    for (const [low, high] of JSON.parse(key) as Range[])
      for (let byte = low; byte <= high; byte++) all[32 * index + (byte >> 3)]! |= 1 << (byte & 7)
  return all
}
