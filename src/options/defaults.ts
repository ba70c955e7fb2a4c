import { GigpoError } from "../util/errors.ts"
import { without } from "./fixed.ts"
import { type Complaint, readTable, refusal } from "./read.ts"
import type { Entry, OptionFields, OptionsOf, RequiredField } from "./table.ts"
import { keysOf, unknownKey } from "./unknown-key.ts"

/**
 * Returns a copy of a table with other defaults.
 *
 * @param values - new defaults by option. An undefined value leaves the default as in `fields`.
 * @throws GigpoError `BAD_ARGUMENT` for a value that the table rejects, and for a group of options.
 */
export function withDefaults<F extends OptionFields>(fields: F, values: OptionsOf<F>): F {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  const unknown = unknownKey(Object.fromEntries(given), keysOf(fields))
  if (unknown !== undefined) throw new GigpoError("BAD_ARGUMENT", `A default of an unknown option: ${unknown}.`)
  return { ...fields, ...Object.fromEntries(given.map(([key, value]) => [key, withDefault(key, fields[key]!, value)])) }
}

function withDefault(key: string, entry: Entry, fallback: unknown): Entry {
  if (!("validate" in entry))
    throw new GigpoError("BAD_ARGUMENT", `${key} is a group of options; set the defaults of its keys instead.`)
  const complaints: readonly Complaint[] = readTable({ [key]: fallback }, { [key]: entry }, "code").complaints
  if (complaints.length > 0) throw refusal("BAD_ARGUMENT", "The defaults", complaints, () => "A default")
  return { ...without(entry as RequiredField<unknown>, "defaultText", "required"), default: fallback }
}
