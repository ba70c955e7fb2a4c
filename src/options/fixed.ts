import type { OptionField, OptionFields, ScheduledField } from "./table.ts"

/** Table `F` without schedules: scheduled options become plain numbers. */
export type Fixed<F> = {
  readonly [Key in keyof F]: F[Key] extends ScheduledField<infer Help> ? OptionField<number, Help> : F[Key]
}

/** Returns a copy of a table whose scheduled options accept plain numbers only. Options in groups are left as they are. */
export function fixed<F extends OptionFields>(fields: F): Fixed<F> {
  const plain = Object.entries(fields).map(([key, entry]) => {
    if (!("changes" in entry)) return [key, entry]
    const { objectForm: _, changes: __, ...field } = entry as ScheduledField
    return [key, field]
  })
  return Object.fromEntries(plain)
}

/** Returns a copy of a table or its values without some keys. A table of options spreads the result: editors show no help through `Omit`. */
export function without<F extends object, Key extends keyof F & string>(fields: F, ...keys: Key[]): Omit<F, Key> {
  const kept = Object.entries(fields).filter(([key]) => !keys.includes(key as Key))
  return Object.fromEntries(kept) as Omit<F, Key>
}

/** Returns the values whose keys are in a table. */
export function only<V extends object, F extends OptionFields>(values: V, fields: F): Pick<V, keyof V & keyof F> {
  const kept = Object.entries(values).filter(([key]) => Object.hasOwn(fields, key))
  return Object.fromEntries(kept) as Pick<V, keyof V & keyof F>
}
