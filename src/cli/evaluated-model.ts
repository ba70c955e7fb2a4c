import { createHash } from "node:crypto"
import { stat } from "node:fs/promises"
import { join } from "node:path"
import { hashFile, listFiles } from "../files/manifest.ts"
import { hubNameOf } from "../hub/names.ts"

/** Maximum size of weights that are hashed, in bytes: about ten seconds of hashing. */
const most = 8e9

/** Name of an evaluated model, with the SHA-256 of its weights up to a size limit. */
export async function describeModel(directory: string): Promise<{ readonly name: string; readonly sha256?: string }> {
  const name = hubNameOf(directory) ?? directory
  const names = (await listFiles(directory)).filter((file) => /^[^/]+\.safetensors$/.test(file))
  const sizes = await Promise.all(names.map(async (file) => (await stat(join(directory, file))).size))
  if (names.length === 0 || sizes.reduce((sum, size) => sum + size, 0) > most) return { name }
  const hash = createHash("sha256")
  for (const file of names) hash.update(`${file} ${await hashFile(join(directory, file))}\n`)
  return { name, sha256: hash.digest("hex") }
}
