import { GigpoError } from "../../util/errors.ts"
import { readBody } from "../read-body.ts"
import { asObject } from "./frames.ts"
import type { ServerAddress } from "./server-address.ts"

/**
 * Finds the field of an action that takes the model's text: the only required field in the server's JSON Schema, of type string.
 *
 * @param timeout - in seconds
 * @throws BAD_CONFIG if there is no such field or several are required, ENVIRONMENT_FAILED or ENVIRONMENT_TIMEOUT if the schema cannot be
 * read
 */
export async function findActionField({ schema }: ServerAddress, timeout: number): Promise<string> {
  const where = `openenv: ${schema.origin}${schema.pathname}`
  let action: unknown
  try {
    const response = await fetch(schema, { redirect: "manual", signal: AbortSignal.timeout(timeout * 1000) })
    if (!response.ok) {
      await response.body?.cancel()
      throw new Error(`status ${response.status}`)
    }
    action = asObject(JSON.parse(await readBody(response))).action
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "TimeoutError")
      throw new GigpoError(
        "ENVIRONMENT_TIMEOUT",
        `${where} did not answer within ${timeout} s; increase messageTimeout.`,
      )
    throw new GigpoError(
      "ENVIRONMENT_FAILED",
      `${where} gave no schema of actions (${reason(cause)}). Start the OpenEnv server, correct url, or set actionField.`,
      { cause },
    )
  }
  const { required, properties } = asObject(action)
  const [field, ...others] = Array.isArray(required) ? required.map(String) : []
  if (field !== undefined && others.length === 0 && asObject(asObject(properties)[field]).type === "string")
    return field
  const fields = Object.keys(asObject(properties)).join(", ")
  throw new GigpoError(
    "BAD_CONFIG",
    `${where} has no single required string among an action's fields (${fields}). Set actionField or act.`,
  )
}

/** Reason of a failure; that of `fetch` is in the error's `cause`. */
function reason(error: unknown): string {
  const { message, cause } = error as Error
  const inner = asObject(cause)
  return String(inner.message || inner.code || message)
}
