/** Function that returns the value of `create`, which is called once, by the first call. For tables that take milliseconds to build. */
export function lazy<Value>(create: () => Value): () => Value {
  let created: { readonly value: Value } | undefined
  return () => {
    created ??= { value: create() }
    return created.value
  }
}
