/** Numbers keys with ids from 0, in order of first occurrence. Equal keys have equal ids. */
export function denseIds(keys: ArrayLike<string | number>): Int32Array {
  const known = new Map<string | number, number>()
  const ids = new Int32Array(keys.length)
  for (let row = 0; row < keys.length; row++) {
    const id = known.get(keys[row]!) ?? known.size
    if (id === known.size) known.set(keys[row]!, id)
    ids[row] = id
  }
  return ids
}
