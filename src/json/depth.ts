/** Maximum nesting of JSON in files, so that recursive code does not overflow the stack. */
export const deepestJson = 200

/**
 * Parses JSON from a file.
 *
 * @param parse - default: `JSON.parse`
 * @throws SyntaxError also if nested deeper than `deepestJson`
 */
export function readJson(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  const value = parse(text)
  if (isDeeper(value, deepestJson)) throw new SyntaxError(`it is nested more than ${deepestJson} levels deep`)
  return value
}

/** Whether objects and lists are nested deeper than `levels`. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false
  if (levels === 0) return true
  const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
  return parts.some((part) => isDeeper(part, levels - 1))
}
