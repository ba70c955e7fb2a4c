import { GigpoError } from "../../util/errors.ts"
import { unlessRefused } from "./refused.ts"
import type { Session } from "./session.ts"

/**
 * What the server calls the model, and its longest context, where it tells.
 *
 * @param asked undefined is the only one that it has
 * @throws GigpoError `ENGINE_REFUSED` where it has none of this name, or several.
 */
export async function findModel(
  { connection }: Session,
  asked: string | undefined,
): Promise<{ readonly name: string; readonly longest: number }> {
  const told = await unlessRefused(() => connection.send({ path: "/get_server_capabilities" }, true))
  const { supported_models } = (told?.body ?? {}) as { supported_models?: unknown }
  const models = (Array.isArray(supported_models) ? supported_models : []).filter(
    (model): model is Record<string, unknown> => typeof model === "object" && model !== null,
  )
  const known = models.flatMap(({ model_name }) => (typeof model_name === "string" ? [model_name] : []))
  const name = asked ?? (known.length === 1 ? known[0] : undefined)
  if (name === undefined || (known.length > 0 && !known.includes(name)))
    throw new GigpoError(
      "ENGINE_REFUSED",
      `The engine at ${connection.url} has ${known.join(", ").slice(0, 500) || "told no models"}${asked ? `, not ${asked}` : ""}: name one of them as engine.model.`,
    )
  const longest = models.find(({ model_name }) => model_name === name)?.max_context_length
  return { name, longest: typeof longest === "number" && longest >= 1 ? longest : Number.POSITIVE_INFINITY }
}
