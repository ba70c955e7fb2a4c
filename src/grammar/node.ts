// What a text may be, put together from parts: the nodes of a context-free grammar over bytes (UTF-8).

/** Grammar of bytes that a completion must match. */
export type Node =
  | { readonly kind: "bytes"; readonly ranges: readonly Range[] } // one byte
  | { readonly kind: "sequence"; readonly parts: readonly Node[] }
  | { readonly kind: "choice"; readonly parts: readonly Node[] }
  | { readonly kind: "repeat"; readonly part: Node; readonly least: number; readonly most: number }
  | { readonly kind: "rule"; readonly node: () => Node } // stands once in the program, however often it is used
  | { readonly kind: "later"; readonly node: () => Node } // its parts are made when the program is compiled

/** First and last, both included. */
export type Range = readonly [number, number]

export const nothing: Node = sequence()
/** What no text is. */
export const impossible: Node = { kind: "choice", parts: [] }

export function sequence(...parts: readonly Node[]): Node {
  return { kind: "sequence", parts }
}

export function choice(parts: readonly Node[]): Node {
  return parts.length === 1 ? parts[0]! : { kind: "choice", parts }
}

/** `most` may be Infinity. */
export function repeat(part: Node, least: number, most: number): Node {
  return least > most ? impossible : { kind: "repeat", part, least, most }
}

export function optional(part: Node): Node {
  return repeat(part, 0, 1)
}

const single: readonly Node[] = Array.from({ length: 256 }, (_, byte) => ({ kind: "bytes", ranges: [[byte, byte]] }))

export function text(value: string): Node {
  return { kind: "sequence", parts: Array.from(Buffer.from(value), (byte) => single[byte]!) }
}

/** A part that is used in many places, or that contains itself. */
export function rule(node: () => Node): Node {
  return { kind: "rule", node: once(node) }
}

/**
 * A part of many nodes, made only when the program gets there: the limit on the program's length then limits the nodes too. `node`
 * must not throw; check what it needs before.
 */
export function later(node: () => Node): Node {
  return { kind: "later", node: once(node) }
}

function once(node: () => Node): () => Node {
  let made: Node | undefined
  return () => (made ??= node())
}
