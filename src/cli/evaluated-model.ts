import { createHash } from "node:crypto"
import { stat } from "node:fs/promises"
import { join } from "node:path"
import { hashFile, listFiles } from "../files/manifest.ts"

/** Maximum size of weights that are hashed, in bytes: about ten seconds of hashing. */
const most = 8e9

/** Name of an evaluated model, with the SHA-256 of its weights up to a size limit. */
export async function describeModel(directory: string): Promise<{ readonly name: string; readonly sha256?: string }> {
  const names = (await listFiles(directory)).filter((name) => /^[^/]+\.safetensors$/.test(name))
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size))
  if (names.length === 0 || sizes.reduce((sum, size) => sum + size, 0) > most) return { name: directory }
  const hash = createHash("sha256")
  for (const name of names) hash.update(`${name} ${await hashFile(join(directory, name))}\n`)
  return { name: directory, sha256: hash.digest("hex") }
}
