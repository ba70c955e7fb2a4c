interface Node {
  readonly next: Map<number, Node>
  ends: boolean
}

/** Set of texts as a trie, for lookups at a place of another text. */
export class TextTrie {
  readonly #root: Node = { next: new Map(), ends: false }

  constructor(texts: Iterable<string>) {
    for (const text of texts) {
      let node = this.#root
      for (let at = 0; at < text.length; at++) {
        const unit = text.charCodeAt(at)
        const next = node.next.get(unit) ?? { next: new Map<number, Node>(), ends: false }
        node.next.set(unit, next)
        node = next
      }
      node.ends = true
    }
  }

  /** Length of the longest text of the set that begins at an index; 0 if there is none. */
  longestAt(text: string, at: number): number {
    let [node, longest] = [this.#root, 0]
    for (let end = at; end < text.length; ) {
      const next = node.next.get(text.charCodeAt(end++))
      if (!next) break
      node = next
      if (node.ends) longest = end - at
    }
    return longest
  }

  /** Whether the part between two indices is a proper prefix of a text of the set. */
  hasLonger(text: string, from: number, end: number): boolean {
    let node: Node | undefined = this.#root
    for (let at = from; at < end && node; at++) node = node.next.get(text.charCodeAt(at))
    return node !== undefined && node.next.size > 0
  }
}
