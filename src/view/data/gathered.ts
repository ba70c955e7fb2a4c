/** Items grouped by key, in the order of first occurrence. */
export class Gathered<Key extends string | number, Item> {
  readonly #items = new Map<Key, { readonly at: number; readonly of: Item[] }>()

  get size(): number {
    return this.#items.size
  }

  /** Adds an item and returns the index of its group. */
  add(key: Key, item: Item): number {
    const known = this.#items.get(key)
    if (known) known.of.push(item)
    else this.#items.set(key, { at: this.#items.size, of: [item] })
    return known?.at ?? this.#items.size - 1
  }

  map<Made>(make: (items: readonly Item[], key: Key, at: number) => Made): Made[] {
    return [...this.#items].map(([key, { of, at }]) => make(of, key, at))
  }
}
