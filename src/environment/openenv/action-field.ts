import { GigpoError } from "../../util/errors.ts"
import { readBody } from "../read-body.ts"
import { asObject } from "./frames.ts"
import type { ServerAddress } from "./server-address.ts"

/**
 * Asks the server's JSON Schemas which field of an action takes a text: the only required one. Throws `BAD_CONFIG` where
 * there is none or another is required too, ENVIRONMENT_FAILED or ENVIRONMENT_TIMEOUT where there is no schema to read.
 *
 * @param timeout in seconds
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
      throw new GigpoError("ENVIRONMENT_TIMEOUT", `${where} did not answer within ${timeout} s; raise messageTimeout.`)
    throw new GigpoError(
      "ENVIRONMENT_FAILED",
      `${where} tells no form of actions (${reason(cause)}). Start the OpenEnv server, correct url, or set actionField.`,
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
    `${where} names no single required text among an action's fields (${fields}). Set actionField, or give act.`,
  )
}

/** `fetch` hides what went wrong in the cause. */
function reason(error: unknown): string {
  const { message, cause } = error as Error
  const inner = asObject(cause)
  return String(inner.message || inner.code || message)
}
