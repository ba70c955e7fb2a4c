import { isObject } from "./files.ts"

/**
 * Tokens that transformers puts before a text: those of a post-processor `TemplateProcessing` before the text, else the
 * token that begins a text if `add_bos_token` is true. Empty for most byte-level models.
 */
export function textPrefix(
  postProcessor: unknown,
  { add_bos_token: addsBos }: { readonly add_bos_token?: unknown },
  bos: string | undefined,
): readonly string[] {
  const single = templateOf(postProcessor)
  if (single) {
    const at = single.findIndex((part) => isObject(part) && "Sequence" in part)
    return single.slice(0, Math.max(at, 0)).flatMap((part) => specialToken(part) ?? [])
  }
  return addsBos === true && bos !== undefined ? [bos] : []
}

/** Parts that a post-processor writes for one text; undefined if it writes only the text. */
function templateOf(processor: unknown): readonly unknown[] | undefined {
  if (!isObject(processor)) return undefined
  if (processor.type === "Sequence" && Array.isArray(processor.processors))
    return processor.processors.map(templateOf).find((parts) => parts !== undefined)
  return processor.type === "TemplateProcessing" && Array.isArray(processor.single) ? processor.single : undefined
}

function specialToken(part: unknown): string | undefined {
  const token = isObject(part) ? part.SpecialToken : undefined
  return isObject(token) && typeof token.id === "string" ? token.id : undefined
}
