import type { Field, Fields, ScheduledField } from "./table.ts"

/** A table whose numbers may not change over a run. */
export type Fixed<F> = {
  readonly [Key in keyof F]: F[Key] extends ScheduledField<infer Help> ? Field<number, Help> : F[Key]
}

/** The same table without schedules. Groups in it stay as they are. */
export function fixed<F extends Fields>(fields: F): Fixed<F> {
  const plain = Object.entries(fields).map(([key, entry]) => {
    if (!("changes" in entry)) return [key, entry]
    const { objectForm: _, changes: __, ...field } = entry as ScheduledField
    return [key, field]
  })
  return Object.fromEntries(plain)
}

/** A table, or its values, without some keys. A table that options are declared by spreads it: editors show no help through `Omit`. */
export function without<F extends object, Key extends keyof F & string>(fields: F, ...keys: Key[]): Omit<F, Key> {
  const kept = Object.entries(fields).filter(([key]) => !keys.includes(key as Key))
  return Object.fromEntries(kept) as Omit<F, Key>
}

/** Of some values those that a table has keys for. */
export function only<V extends object, F extends Fields>(values: V, fields: F): Pick<V, keyof V & keyof F> {
  const kept = Object.entries(values).filter(([key]) => Object.hasOwn(fields, key))
  return Object.fromEntries(kept) as Pick<V, keyof V & keyof F>
}
