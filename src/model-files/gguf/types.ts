/** Tensor type of GGUF: `elements` numbers are stored as one block of `bytes` bytes. */
export interface GgufType {
  /** Number in the file format. */
  readonly id: number
  readonly name: string
  readonly elements: number
  readonly bytes: number
  /** Whether the engine reads this type. */
  readonly readable: boolean
}

const readable = [
  [0, "F32", 1, 4],
  [1, "F16", 1, 2],
  [2, "Q4_0", 32, 18],
  [3, "Q4_1", 32, 20],
  [6, "Q5_0", 32, 22],
  [7, "Q5_1", 32, 24],
  [8, "Q8_0", 32, 34],
  [10, "Q2_K", 256, 84],
  [11, "Q3_K", 256, 110],
  [12, "Q4_K", 256, 144],
  [13, "Q5_K", 256, 176],
  [14, "Q6_K", 256, 210],
  [20, "IQ4_NL", 32, 18],
  [23, "IQ4_XS", 256, 136],
  [30, "BF16", 1, 2],
] as const

/** Types that the engine does not read. Their sizes are known, so that files with such tensors can be checked. */
const unreadable = [
  [9, "Q8_1", 32, 36],
  [15, "Q8_K", 256, 292],
  [16, "IQ2_XXS", 256, 66],
  [17, "IQ2_XS", 256, 74],
  [18, "IQ3_XXS", 256, 98],
  [19, "IQ1_S", 256, 50],
  [21, "IQ3_S", 256, 110],
  [22, "IQ2_S", 256, 82],
  [24, "I8", 1, 1],
  [25, "I16", 1, 2],
  [26, "I32", 1, 4],
  [27, "I64", 1, 8],
  [28, "F64", 1, 8],
  [29, "IQ1_M", 256, 56],
  [34, "TQ1_0", 256, 54],
  [35, "TQ2_0", 256, 66],
  [39, "MXFP4", 32, 17],
] as const

/** Names of the types that the engine reads. */
export type ReadableGgufType = (typeof readable)[number][1]

type Row = readonly [id: number, name: string, elements: number, bytes: number]
const rows = (list: readonly Row[], readable: boolean): GgufType[] =>
  list.map(([id, name, elements, bytes]) => ({ id, name, elements, bytes, readable }))

/** All tensor types of GGUF (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). */
export const ggufTypes: readonly GgufType[] = [...rows(readable, true), ...rows(unreadable, false)]

const byId = new Map(ggufTypes.map((type) => [type.id, type]))

/** Returns the type of a number in the file format, or undefined for an unknown one. */
export function ggufType(id: number): GgufType | undefined {
  return byId.get(id)
}

const byName = new Map(ggufTypes.map((type) => [type.name, type]))

/** Returns the number of elements in `bytes` bytes of a type. */
export function elementsIn(bytes: number, name: ReadableGgufType): number {
  const type = byName.get(name)!
  return (bytes / type.bytes) * type.elements
}
