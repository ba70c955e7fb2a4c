import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { gunzipSync } from "node:zlib"

/** The folder with WebShop's small catalogue and the recordings made on it; nothing of it is in this repository. */
export const folder = fileURLToPath(new URL("../../../../shared/data/webshop/", import.meta.url))
export const present = existsSync(`${folder}items_shuffle_1000.json`)
export const reason = present ? "" : " (skipped: ../shared/data/webshop is not there)"

export function readJson<T>(name: string): T {
  return JSON.parse(readFileSync(folder + name, "utf8")) as T
}

export function readLines<T>(name: string): T[] {
  const bytes = readFileSync(folder + name)
  const text = (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString()
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as T)
}

export async function* iterate<T>(items: Iterable<T>): AsyncGenerator<T, void> {
  yield* items
}
