import { isObject, type JsonObject } from "../files.ts"

/** Error for an unsupported part of tokenizer.json. The message continues a sentence that begins with the path of the file. */
export class Unsupported extends Error {}

export type Guard<T> = (value: unknown) => value is T

export const isString: Guard<string> = (value) => typeof value === "string"
export const isBoolean: Guard<boolean> = (value) => typeof value === "boolean"
export const isCount: Guard<number> = (value): value is number => Number.isSafeInteger(value) && (value as number) >= 0
export const isCharacter: Guard<string> = (value): value is string => isString(value) && [...value].length === 1
export const isList: Guard<readonly unknown[]> = (value): value is readonly unknown[] => Array.isArray(value)
export const isNull: Guard<null> = (value) => value === null

export function oneOf<const T extends string>(...values: readonly T[]): Guard<T> {
  return (value): value is T => values.includes(value as T)
}

/** Guard for a value of a type, null, or undefined. */
export function optional<T>(guard: Guard<T>): Guard<T | null | undefined> {
  return (value): value is T | null | undefined => value === undefined || value === null || guard(value)
}

/** Reads a part of tokenizer.json with these keys and no others. Throws Unsupported for another key or an invalid value. */
export function readFields<Guards extends Readonly<Record<string, Guard<unknown>>>>(
  part: unknown,
  where: string,
  guards: Guards,
): { readonly [Key in keyof Guards]: Guards[Key] extends Guard<infer T> ? T : never } {
  if (!isObject(part)) throw new Unsupported(`has ${show(part)} for ${where}`)
  for (const key of Object.keys(part))
    if (!Object.hasOwn(guards, key)) throw new Unsupported(`has the unknown key ${show(key)} in ${where}`)
  for (const [key, guard] of Object.entries(guards))
    if (!guard(part[key])) throw new Unsupported(`has ${show(part[key])} for ${key} of ${where}`)
  return part as never
}

/** Value of `type` of a part. */
export function kindOf(part: unknown, where: string): string {
  if (!isObject(part) || typeof part.type !== "string") throw new Unsupported(`has ${show(part)} for ${where}`)
  return part.type
}

export function unsupportedKind(part: JsonObject | unknown, where: string): Unsupported {
  return new Unsupported(`has a ${where} of the kind ${kindOf(part, where)}, which is not supported`)
}

export function show(value: unknown): string {
  return String(JSON.stringify(value)).slice(0, 100)
}
