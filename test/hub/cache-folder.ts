import { mkdtempSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { vi } from "vitest"
import { type Hub, type Repository, sha256, startHub } from "./hub-server.ts"

/** Tries and waits that tests have time for. */
export const quick = { tries: 1, pause: 1, silence: 5000 }

/** Sets the environment to an empty cache and a Hub of its own, and no token. */
export async function freshHub(repositories: Record<string, Repository>): Promise<Hub & { readonly home: string }> {
  const hub = await startHub(repositories)
  return Object.assign(hub, { home: freshHome(hub.url) })
}

export function freshHome(endpoint: string): string {
  const home = mkdtempSync(join(tmpdir(), "gigpo-hub-"))
  for (const name of [
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "HF_TOKEN",
    "HF_TOKEN_PATH",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
  ])
    vi.stubEnv(name, "")
  vi.stubEnv("HF_HOME", home)
  vi.stubEnv("HF_ENDPOINT", endpoint)
  return home
}

/** Digests of the files of a folder, links followed, by path. */
export async function contentOf(folder: string): Promise<Record<string, string>> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = names.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))
  const read = files.map(async (path) => [path.slice(folder.length + 1), sha256(await readFile(path))] as const)
  return Object.fromEntries((await Promise.all(read)).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Those files of a model that are downloaded. */
export function neededFiles(files: Readonly<Record<string, Buffer>>): Record<string, Buffer> {
  const needed = Object.entries(files).filter(([name]) => /^[^/]+\.(json|safetensors)$/.test(name))
  return Object.fromEntries(needed.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Their digests. */
export function neededOf(files: Readonly<Record<string, Buffer>>): Record<string, string> {
  return Object.fromEntries(Object.entries(neededFiles(files)).map(([name, bytes]) => [name, sha256(bytes)]))
}
