import type { Json, Stateful } from "../util/state.ts"

/** Returns the combined state of a stateful estimator and an inner estimator, which may have a state. Both are stored separately. */
export function jointState(own: Stateful, inner: Partial<Stateful>): Stateful {
  return {
    state() {
      const [mine, other] = [own.state(), inner.state?.() ?? {}]
      const arrays = Object.entries(other.arrays ?? {}).map(([name, values]) => [`of/${name}`, values] as const)
      return {
        json: { own: mine.json ?? null, of: other.json ?? null },
        arrays: { ...mine.arrays, ...Object.fromEntries(arrays) },
      }
    },
    restore({ json, arrays = {} }) {
      const saved = json as { readonly own: Json; readonly of: Json }
      const others = Object.entries(arrays).filter(([name]) => name.startsWith("of/"))
      own.restore({ json: saved.own, arrays })
      inner.restore?.({
        json: saved.of,
        arrays: Object.fromEntries(others.map(([name, values]) => [name.slice("of/".length), values])),
      })
    },
  }
}
