import type { z } from "zod"
import { configSchema } from "./schema.ts"

/** A key of the configuration file. */
export interface ConfigKey {
  readonly path: readonly string[]
  readonly description: string
  /** What it is where the file does not say; undefined also where that depends on other things. */
  readonly default: unknown
  /** Holds further keys. */
  readonly group: boolean
  /** A group that is only there where the file has it. */
  readonly optional: boolean
  /** Also takes keys that are not listed here (the environment's own). */
  readonly open: boolean
}

/** Every key, each group before the keys in it. */
export const configKeys: readonly ConfigKey[] = listKeys(configSchema, [])

function listKeys(group: z.ZodObject, above: readonly string[]): ConfigKey[] {
  return Object.entries(group.shape).flatMap(([name, schema]) => {
    const path = [...above, name]
    const { inner, fallback } = unwrap(schema)
    const description = schema.description ?? inner.description ?? ""
    const object = inner.def.type === "object" ? (inner as z.ZodObject) : undefined
    const open = object?.def.catchall?._zod.def.type === "unknown"
    const group = object !== undefined
    const optional = group && schema.def.type === "optional"
    const key = { path, description, default: group ? undefined : fallback, group, optional, open }
    return [key, ...(object ? listKeys(object, path) : [])]
  })
}

/** Looks below `default`, `prefault` and `exactOptional`. */
function unwrap(schema: z.ZodType): { inner: z.ZodType; fallback: unknown } {
  let inner = schema
  let fallback: unknown
  for (;;) {
    const def = inner.def as { type: string; innerType?: z.ZodType; defaultValue?: unknown }
    if (def.innerType === undefined) return { inner, fallback }
    if (def.type === "default") fallback = def.defaultValue
    inner = def.innerType
  }
}
