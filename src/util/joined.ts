/** Concatenates arrays. */
export function joined<Joined extends Uint8Array | Uint16Array | Int32Array | Float32Array | Float64Array>(
  Type: new (length: number) => Joined,
  parts: readonly ArrayLike<number>[],
): Joined {
  const all = new Type(parts.reduce((sum, { length }) => sum + length, 0))
  let end = 0
  for (const part of parts) {
    all.set(part, end)
    end += part.length
  }
  return all
}
