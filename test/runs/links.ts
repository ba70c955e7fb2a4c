import { execFileSync } from "node:child_process"
import {
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { GigpoError } from "../../src/util/errors.ts"

// Folders from elsewhere, with a link or a pipe in the place of one of their files or folders.

/** What the files outside say, in no folder and no output. */
export const secret = "root:x:0:0:kept-outside"

/** Kinds of entries at a path. */
export const kinds = ["absolute", "relative", "chained", "directory", "dangling", "pipe"] as const
export type Kind = (typeof kinds)[number]

export interface Place {
  readonly root: string
  /** The received folder. */
  readonly folder: string
  /** What links lead to. */
  readonly outside: string
}

/**
 * A copy of `received` where `level` is a link to what was there and lies outside now, or to a folder or a text that is secret.
 */
export async function putLink(received: string, level: string, kind: Kind): Promise<Place> {
  const root = await mkdtemp(join(tmpdir(), "gigpo-links-"))
  const place = { root, folder: join(root, "received"), outside: join(root, "outside") }
  await cp(received, place.folder, { recursive: true })
  const [path, original] = [join(place.folder, level), join(place.outside, "original")]
  await mkdir(join(place.outside, "folder"), { recursive: true })
  await writeFile(join(place.outside, "folder", "victim.txt"), secret)
  await mkdir(dirname(path), { recursive: true })
  const found = await lstat(path).catch(() => undefined)
  if (found) await rename(path, original)
  else await writeFile(original, secret)
  if (kind === "relative" && !found?.isDirectory()) await writeFile(original, secret)
  if (kind === "chained") await symlink(original, join(place.outside, "hop"))
  if (kind === "pipe") execFileSync("mkfifo", [path])
  const targets: Record<Exclude<Kind, "pipe">, string> = {
    absolute: original,
    relative: relative(dirname(path), original),
    chained: join(place.outside, "hop"),
    directory: join(place.outside, "folder"),
    dangling: join(place.outside, "none"),
  }
  if (kind !== "pipe") await symlink(targets[kind], path)
  return place
}

/** Every entry below a folder, with what a file holds and where a link leads. */
export async function tree(folder: string): Promise<Record<string, string>> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  const found = entries.map(async (entry) => {
    const path = join(entry.parentPath, entry.name)
    if (entry.isSymbolicLink()) return [path, `-> ${await readlink(path)}`]
    return [path, entry.isFile() ? await readFile(path, "latin1") : entry.isDirectory() ? "folder" : "pipe"]
  })
  return Object.fromEntries(await Promise.all(found))
}

/** What came of a call: its error's code, "done", or "hangs" where a pipe is waited for. */
export async function outcomeOf(call: () => Promise<unknown>): Promise<{ code: string; text: string }> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("hangs")), 20_000)
  })
  try {
    return { code: "done", text: JSON.stringify(await Promise.race([call(), late])) ?? "" }
  } catch (error) {
    const { message } = error as Error
    return { code: GigpoError.is(error) ? error.code : `${(error as Error).name}: ${message}`, text: message }
  } finally {
    clearTimeout(timer)
  }
}

export async function remove({ root }: Place): Promise<void> {
  await rm(root, { recursive: true, force: true })
}
