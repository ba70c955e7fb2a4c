import { GigpoError } from "../../util/errors.ts"
import { unlessRefused } from "./refused.ts"
import type { Session } from "./session.ts"

/**
 * Returns the server's name of the model, and the maximum tokens of its context (Infinity if not reported).
 *
 * @param requested name of the model; undefined selects the server's only model
 * @throws GigpoError `ENGINE_REJECTED` if no model has the name, or no name is given and the server has several.
 */
export async function findModel(
  { connection }: Session,
  requested: string | undefined,
): Promise<{ readonly name: string; readonly longest: number }> {
  const response = await unlessRefused(() => connection.send({ path: "/get_server_capabilities" }, true))
  const { supported_models } = (response?.body ?? {}) as { supported_models?: unknown }
  const models = (Array.isArray(supported_models) ? supported_models : []).filter(
    (model): model is Record<string, unknown> => typeof model === "object" && model !== null,
  )
  const known = models.flatMap(({ model_name }) => (typeof model_name === "string" ? [model_name] : []))
  const name = requested ?? (known.length === 1 ? known[0] : undefined)
  if (name === undefined || (known.length > 0 && !known.includes(name))) {
    const models = known.length > 0 ? `has the models ${known.join(", ").slice(0, 500)}` : "lists no models"
    throw new GigpoError(
      "ENGINE_REJECTED",
      `The engine at ${connection.url} ${models}${requested ? `, not ${requested}` : ""}: set engine.model to the name of one.`,
    )
  }
  const longest = models.find(({ model_name }) => model_name === name)?.max_context_length
  return { name, longest: typeof longest === "number" && longest >= 1 ? longest : Number.POSITIVE_INFINITY }
}
