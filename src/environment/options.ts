import { readOptions as read } from "../options/read.ts"
import type { OptionFields, ResolvedOf } from "../options/table.ts"

/**
 * Resolves the options of an environment with their defaults.
 *
 * @param name - name of the environment, for messages
 * @throws BAD_CONFIG with all unknown and invalid options
 */
export function readOptions<F extends OptionFields>(name: string, given: object, fields: F): ResolvedOf<F> {
  return read(name, given, fields, "BAD_CONFIG")
}
