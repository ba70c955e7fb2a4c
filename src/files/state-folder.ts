import { randomBytes } from "node:crypto"
import { link, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { dirname, isAbsolute, join, resolve } from "node:path"
import { isSystemError } from "./io-error.ts"

/** Folder of gigpo's state for this user on this machine: GIGPO_STATE, or the system's location for such files. */
export function stateFolder(environment: NodeJS.ProcessEnv = process.env, platform = process.platform): string {
  const { GIGPO_STATE, XDG_STATE_HOME, LOCALAPPDATA } = environment
  if (GIGPO_STATE) return resolve(GIGPO_STATE)
  if (platform === "win32") return join(LOCALAPPDATA ?? join(homedir(), "AppData", "Local"), "gigpo")
  if (platform === "darwin") return join(homedir(), "Library", "Application Support", "gigpo")
  // Relative paths are ignored (XDG Base Directory Specification).
  const state = XDG_STATE_HOME && isAbsolute(XDG_STATE_HOME) ? XDG_STATE_HOME : join(homedir(), ".local", "state")
  return join(state, "gigpo")
}

const keys = new Map<string, string>()
const pattern = /^[0-9a-f]{64}$/

/**
 * Key of this user on this machine, 64 hexadecimal digits, from a file in the state folder. If the file cannot be
 * written, the key lasts as long as the process.
 *
 * @param name - "journal": identifies unfinished work; "view": identifies the browsers of the dashboard
 * @param make - whether to create a missing key; otherwise undefined.
 */
export async function stateKey(name: "journal" | "view", make: boolean): Promise<string | undefined> {
  const path = join(stateFolder(), `${name}.key`)
  const known = keys.get(path) ?? (await readKey(path)) ?? (make ? await makeKey(path) : undefined)
  if (known !== undefined) keys.set(path, known)
  return known
}

async function readKey(path: string): Promise<string | undefined> {
  const text = (await readFile(path, "utf8").catch(() => "")).trim()
  return pattern.test(text) ? text : undefined
}

async function makeKey(path: string): Promise<string> {
  const key = randomBytes(32).toString("hex")
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(temporary, `${key}\n`, { flag: "wx", mode: 0o600, flush: true })
    // link() never replaces a key that another process created meanwhile; not every file system supports links.
    await link(temporary, path).catch(async (cause) => {
      if (!isSystemError(cause) || cause.code !== "EEXIST" || (await readKey(path)) === undefined)
        await rename(temporary, path)
    })
    return (await readKey(path)) ?? key
  } catch {
    return key
  } finally {
    await rm(temporary, { force: true }).catch(() => {})
  }
}
