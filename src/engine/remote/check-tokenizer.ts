import { join } from "node:path"
import { isThere } from "../../files/io-error.ts"
import { hashFile } from "../../files/manifest.ts"
import { GigpoError } from "../../util/errors.ts"
import type { Session } from "./session.ts"

/**
 * Compares the server's tokenizer with the local one, if the server reports its digest; other servers report only a
 * name.
 *
 * @param directory - folder of the local tokenizer.json
 * @returns the server's name of its tokenizer
 * @throws GigpoError `BAD_TOKENIZER` if they differ: tokens would have other meanings on the server.
 */
export async function checkTokenizer(
  session: Session,
  modelId: string,
  directory: string | undefined,
): Promise<string> {
  const { model_data } = await session.post("/get_info", { model_id: modelId, type: "get_info" })
  const { tokenizer_id: id } = (model_data ?? {}) as { tokenizer_id?: unknown }
  const name = typeof id === "string" ? id : "not told"
  const file = directory === undefined ? undefined : join(directory, "tokenizer.json")
  if (file === undefined || !/^[0-9a-f]{64}$/.test(name) || !(await isThere(file)) || (await hashFile(file)) === name)
    return name
  throw new GigpoError(
    "BAD_TOKENIZER",
    `${file} differs from the tokenizer of the engine at ${session.connection.url}: use the folder of the model that the engine serves.`,
  )
}
