import { createHash } from "node:crypto"
import { mkdir, readFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { replaceFile } from "../../files/atomic-file.ts"
import { io } from "../../files/io-error.ts"
import { stateFolder } from "../../files/state-folder.ts"
import { openGguf } from "../../model-files/gguf/open.ts"
import { convertTokenizer, type TokenizerTexts } from "./convert.ts"

/**
 * Returns a folder with the tokenizer of a GGUF file in Hugging Face's layout, so that it can be copied next to a trained model. The
 * folder is kept in the state folder (GIGPO_STATE) under a hash of the contents; files that differ from them are written again.
 *
 * @throws GigpoError `BAD_MODEL`, `BAD_TOKENIZER`, `IO`
 */
export async function ggufTokenizerFolder(path: string): Promise<string> {
  const texts = Object.entries(await textsOf(path))
  const hash = createHash("sha256").update(JSON.stringify(texts)).digest("hex").slice(0, 32)
  const folder = join(stateFolder(), "tokenizers", hash)
  for (const [name, text] of texts) {
    const file = join(folder, name)
    if ((await readFile(file, "utf8").catch(() => undefined)) === text) continue
    await io("create", dirname(file), mkdir(dirname(file), { recursive: true }))
    await replaceFile(file, text)
  }
  return folder
}

/**
 * Checks that the tokenizer of a GGUF file is one that `ggufTokenizerFolder` converts.
 *
 * @throws GigpoError `BAD_MODEL`, `BAD_TOKENIZER`, `IO`
 */
export async function checkGgufTokenizer(path: string): Promise<void> {
  await textsOf(path)
}

async function textsOf(path: string): Promise<TokenizerTexts> {
  const { close, metadata } = await openGguf(path)
  await close()
  return convertTokenizer(metadata, path)
}
