/** What is alike stands together, in the order in which it was first met. */
export class Gathered<Key extends string | number, Item> {
  readonly #items = new Map<Key, { readonly at: number; readonly of: Item[] }>()

  get size(): number {
    return this.#items.size
  }

  /** Where it stands. */
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
