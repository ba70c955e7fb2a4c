import { GigpoError } from "../../errors.ts"
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
  const models = (Array.isArray(supported_models) ? supported_models : []) as Record<string, unknown>[]
  const known = models.map(({ model_name }) => String(model_name))
  const name = asked ?? (known.length === 1 ? known[0] : undefined)
  if (name === undefined || (known.length > 0 && !known.includes(name)))
    throw new GigpoError(
      "ENGINE_REFUSED",
      `The engine at ${connection.url} has ${known.join(", ") || "told no models"}${asked ? `, not ${asked}` : ""}: name one of them as engine.model.`,
    )
  const longest = models.find(({ model_name }) => model_name === name)?.max_context_length
  return { name, longest: typeof longest === "number" ? longest : Number.POSITIVE_INFINITY }
}
