/** Returns the index of the sequence that contains a token, and the position of the token in it. */
export function locate(token: number, offsets: Int32Array): [sequence: number, token: number] {
  const sequence = offsets.findLastIndex((start) => start <= token)
  return [sequence, token - offsets[sequence]!]
}
