import { join } from "node:path"
import { isThere } from "../../files/io-error.ts"
import { hashFile } from "../../files/manifest.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Session } from "./session.ts"

/**
 * Compares the server's tokenizer with the local one, where the server tells its digest; others tell a name, which says little.
 *
 * @param directory with the local tokenizer.json
 * @returns what the server calls its tokenizer
 * @throws GigpoError `BAD_TOKENIZER` where they are not the same: every token would mean something else there.
 */
export async function checkTokenizer(
  session: Session,
  modelId: string,
  directory: string | undefined,
): Promise<string> {
  const { model_data } = await session.post("/get_info", { model_id: modelId, type: "get_info" })
  const { tokenizer_id: told } = (model_data ?? {}) as { tokenizer_id?: unknown }
  const name = typeof told === "string" ? told : "not told"
  const file = directory === undefined ? undefined : join(directory, "tokenizer.json")
  if (file === undefined || !/^[0-9a-f]{64}$/.test(name) || !(await isThere(file)) || (await hashFile(file)) === name)
    return name
  throw new GigpoError(
    "BAD_TOKENIZER",
    `${file} is not the tokenizer of the engine at ${session.connection.url}: take the folder of the model that it serves.`,
  )
}
