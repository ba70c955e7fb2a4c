/** Number formats of exported models, by their names in llama.cpp. */
export const recipes = {
  f32: { matrices: "F32", fileType: 0 },
  f16: { matrices: "F16", fileType: 1 },
  bf16: { matrices: "BF16", fileType: 32 },
  q8_0: { matrices: "Q8_0", fileType: 7 },
  q4_0: { matrices: "Q4_0", fileType: 2 },
  q4_k_m: { matrices: "Q4_K", fileType: 15 },
} as const

export type Recipe = keyof typeof recipes

/** Rows of these formats must be multiples of 256; other rows are stored with about the same loss in blocks of 32. */
const inSmallBlocks: Readonly<Record<string, string>> = { Q4_K: "Q5_0", Q6_K: "Q8_0" }

/**
 * Returns the type of a tensor. Vectors stay F32. In the four-bit recipes the head, and an embedding that is also the head, are stored
 * with more bits, and q4_k_m does so too for half of the value and down projections, as llama.cpp's quantize does.
 *
 * @param name - name in the GGUF file.
 * @param shape - outermost dimension first.
 */
export function tensorType(
  recipe: Recipe,
  name: string,
  shape: readonly number[],
  { layers, tied }: { readonly layers: number; readonly tied: boolean },
): string {
  if (shape.length < 2) return "F32"
  const wanted = wantedType(recipe, name, layers, tied)
  const columns = shape.at(-1)!
  const type = columns % 256 === 0 ? wanted : (inSmallBlocks[wanted] ?? wanted)
  return columns % 32 === 0 || ["F32", "F16", "BF16"].includes(type) ? type : "F16"
}

function wantedType(recipe: Recipe, name: string, layers: number, tied: boolean): string {
  const { matrices } = recipes[recipe]
  const head = name === "output.weight" || (tied && name === "token_embd.weight")
  if (recipe !== "q4_0" && recipe !== "q4_k_m") return matrices
  if (head) return "Q6_K"
  const layer = /^blk\.(\d+)\.(attn_v|ffn_down)\.weight$/.exec(name)
  return recipe === "q4_k_m" && layer && needsMoreBits(Number(layer[1]), layers) ? "Q6_K" : matrices
}

/** Whether a layer gets more bits: the first and last eighth of the layers, and every third between them. */
function needsMoreBits(layer: number, layers: number): boolean {
  const eighth = Math.floor(layers / 8)
  return layer < eighth || layer >= Math.floor((7 * layers) / 8) || (layer - eighth) % 3 === 2
}
