import { insideModel } from "../files/inside.ts"
import { checkpointManifest, folderManifest } from "../files/manifest.ts"
import { readIfThere } from "../files/regular-file.ts"

/** Name of the environment that a model was made or trained for, as its folder records it; undefined if it records none. */
export async function madeFor(directory: string): Promise<string | undefined> {
  for (const manifest of [folderManifest, checkpointManifest]) {
    const text = await readIfThere(await insideModel(directory, manifest))
    const environment = text === undefined ? undefined : environmentIn(text)
    if (environment !== undefined) return environment
  }
  return undefined
}

function environmentIn(text: string): string | undefined {
  try {
    const { environment } = JSON.parse(text) as { environment?: unknown }
    return typeof environment === "string" ? environment : undefined
  } catch {
    return undefined
  }
}
