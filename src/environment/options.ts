import { readOptions as read } from "../options/read.ts"
import type { Fields, Resolved } from "../options/table.ts"

/**
 * An environment's options with their defaults filled in.
 *
 * @param name the environment's, for messages
 * @throws BAD_CONFIG with everything that is unknown or wrong
 */
export function readOptions<F extends Fields>(name: string, given: object, fields: F): Resolved<F> {
  return read(name, given, fields, "BAD_CONFIG")
}
