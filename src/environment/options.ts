import { readOptions as read } from "../options/read.ts"
import type { Fields, Resolved } from "../options/table.ts"

/**
 * Resolves the options of an environment with their defaults.
 *
 * @param name - name of the environment, for messages
 * @throws BAD_CONFIG with all unknown and invalid options
 */
export function readOptions<F extends Fields>(name: string, given: object, fields: F): Resolved<F> {
  return read(name, given, fields, "BAD_CONFIG")
}
