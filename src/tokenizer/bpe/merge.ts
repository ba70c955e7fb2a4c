import { randomInt } from "node:crypto"
import type { Pieces } from "../../util/pace.ts"

/** Random odd factors of the hash. With known factors, a file with colliding merges would cause quadratic time. */
const [leftFactor, rightFactor] = [randomInt(2 ** 30) * 2 + 1, randomInt(2 ** 30) * 2 + 1]

/** Merges of pairs of ids; those of lower rank are applied first. */
export class Merges {
  readonly #slots: Int32Array
  readonly #mask: number
  /** [rank] */
  readonly ids: Int32Array

  /** @param merges - [left, right, merged] by rank. Of two merges of the same pair, the later is used. */
  constructor(merges: readonly (readonly [number, number, number])[]) {
    let size = 16
    while (size < merges.length * 2) size *= 2
    this.#mask = size - 1
    this.#slots = new Int32Array(size * 3).fill(-1)
    this.ids = Int32Array.from(merges, ([, , merged]) => merged)
    for (const [rank, [left, right]] of merges.entries()) {
      const slot = this.#find(left, right)
      this.#slots[slot] = left
      this.#slots[slot + 1] = right
      this.#slots[slot + 2] = rank
    }
  }

  /** Rank of a pair; -1 if it does not merge. */
  rank(left: number, right: number): number {
    return this.#slots[this.#find(left, right) + 2]!
  }

  #find(left: number, right: number): number {
    const slots = this.#slots
    let hash = Math.imul(left, leftFactor) ^ Math.imul(right, rightFactor)
    hash ^= hash >>> 15
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const place = slot * 3
      if (slots[place] === -1 || (slots[place] === left && slots[place + 1] === right)) return place
    }
  }
}

/** Factor of the rank in a queue entry, which is the number rank × placeLimit + place. */
const placeLimit = 2 ** 28
/** Number of steps between two possible pauses. */
const stepsPerPiece = 1024

/**
 * Merges adjacent symbols in place, always the leftmost pair of the lowest rank. Takes O(n log n) time, with a linked list of symbols and a
 * heap of pairs.
 */
export function* mergeAll(ids: number[], merges: Merges): Pieces<void> {
  const count = ids.length
  if (count < 2) return
  const next = new Int32Array(count)
  const previous = new Int32Array(count)
  const queue = new MinHeap()
  for (let place = 0; place < count; place++) {
    next[place] = place + 1
    previous[place] = place - 1
    offer(place)
    if (place % stepsPerPiece === stepsPerPiece - 1) yield
  }
  let steps = 0
  for (let entry = queue.pop(); entry !== undefined; entry = queue.pop()) {
    if (++steps % stepsPerPiece === 0) yield
    const place = entry % placeLimit
    const rank = (entry - place) / placeLimit
    const right = next[place]!
    // The entry is outdated if its symbols have merged with others.
    if (ids[place] === gone || right >= count) continue
    const current = merges.rank(ids[place]!, ids[right]!)
    if (current < 0 || merges.ids[current] !== merges.ids[rank]) continue
    ids[place] = merges.ids[rank]!
    ids[right] = gone
    const after = next[right]!
    next[place] = after
    if (after < count) previous[after] = place
    if (previous[place]! >= 0) offer(previous[place]!)
    offer(place)
  }
  let left = 0
  for (let place = 0; place < count; place = next[place]!) ids[left++] = ids[place]!
  ids.length = left

  function offer(place: number): void {
    const right = next[place]!
    if (right >= count) return
    const rank = merges.rank(ids[place]!, ids[right]!)
    if (rank >= 0) queue.push(rank * placeLimit + place)
  }
}

const gone = -1

class MinHeap {
  readonly #items: number[] = []

  push(item: number): void {
    const items = this.#items
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (items[parent]! <= item) break
      items[at] = items[parent]!
      at = parent
    }
    items[at] = item
  }

  pop(): number | undefined {
    const items = this.#items
    const top = items[0]
    const item = items.pop()
    if (item === undefined || items.length === 0) return top
    let at = 0
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && items[child + 1]! < items[child]!) child++
      if (items[child]! >= item) break
      items[at] = items[child]!
      at = child
    }
    items[at] = item
    return top
  }
}
