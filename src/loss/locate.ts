/** Which sequence the token with this number stands in, and where in it. */
export function locate(token: number, offsets: Int32Array): [sequence: number, token: number] {
  const sequence = offsets.findLastIndex((start) => start <= token)
  return [sequence, token - offsets[sequence]!]
}
