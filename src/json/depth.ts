/** How deep JSON in files may be nested: code that walks it must not run out of stack. */
export const deepestJson = 200

/**
 * The value of a JSON text from a file.
 *
 * @param parse default `JSON.parse`
 * @throws SyntaxError also where it is nested more than `deepestJson` deep
 */
export function readJson(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  const value = parse(text)
  if (isDeeper(value, deepestJson)) throw new SyntaxError(`it is nested more than ${deepestJson} deep`)
  return value
}

/** Whether objects and lists are nested more than so many levels. */
export function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false
  if (levels === 0) return true
  const parts: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
  return parts.some((part) => isDeeper(part, levels - 1))
}
