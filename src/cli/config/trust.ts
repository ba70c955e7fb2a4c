import { realpath } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { resolveFolder } from "../../files/atomic-directory.ts"
import { isThere } from "../../files/io-error.ts"
import { wasWrittenHere } from "../../files/written-here.ts"
import { runFiles } from "../../runs/files.ts"
import { GigpoError } from "../../util/errors.ts"
import { Screen } from "../terminal/screen.ts"
import type { Config } from "./config.ts"
import type { ConfigDocument } from "./document.ts"
import { quoted, type Reach, reachesOf } from "./reaches.ts"

// A configuration file that the user wrote is trusted: what it names is run. The config.json of a run is data, since
// runs are shared. It is trusted only if this user's gigpo wrote it on this machine.

export interface Trust {
  /** Whether to run and contact what a run from elsewhere names. Default false. */
  readonly trust?: boolean | undefined
  /** Folders that the command writes, by their configuration keys. */
  readonly writes?: readonly ("run" | "model")[]
}

/**
 * Rejects the configuration of a run from elsewhere that would run code, start a program, contact a server, or write
 * outside the run folder.
 *
 * @param config - the part of the configuration that the command uses
 * @param path - path of the configuration file
 * @throws GigpoError `UNTRUSTED` with all of these actions; if trusted, they are reported on standard error instead
 */
export async function checkTrusted(
  config: Partial<Config>,
  parsed: ConfigDocument,
  path: string,
  { trust = false, writes = [] }: Trust,
): Promise<void> {
  if (!(await isOfRun(parsed, path)) || (await wasWrittenHere(path, parsed.text))) return
  const reaches = [...reachesOf(config, parsed, dirname(path)), ...(await written(config, parsed, path, writes))]
  const requested = reaches.filter(({ given }) => !given)
  if (requested.length === 0) return
  const whose = `${path} is the configuration of a run that you did not make on this machine`
  const more = requested.length > mostShown ? [`${requested.length - mostShown} more`] : []
  const what = [...requested.slice(0, mostShown).map(({ text }) => text), ...more].join("; ")
  if (trust) return new Screen(process.stderr, { live: false }).print(`${whose}. With --trust it will ${what}.`)
  throw new GigpoError(
    "UNTRUSTED",
    `${whose}, and it would ${what}. None of this was done. If you trust its author, add --trust.`,
  )
}

/** Maximum actions listed in a message. */
const mostShown = 30

/** Whether a configuration marks itself as a run's, or is in a run folder, with links resolved. */
async function isOfRun({ document }: ConfigDocument, path: string): Promise<boolean> {
  if (document.has("gigpo")) return true
  const folders = [dirname(resolve(path)), dirname(await realpath(path))]
  const marks = [runFiles.metrics, runFiles.checkpoints, runFiles.episodes]
  const found = folders.flatMap((folder) => marks.map((mark) => isThere(join(folder, mark))))
  return (await Promise.all(found)).includes(true)
}

async function written(
  config: Partial<Config>,
  { isSet }: ConfigDocument,
  path: string,
  keys: readonly ("run" | "model")[],
): Promise<Reach[]> {
  const own = await resolveFolder(dirname(path))
  const all = await Promise.all(
    keys.map(async (key): Promise<Reach[]> => {
      const folder = await resolveFolder(config[key]!)
      return folder === own
        ? []
        : [{ kind: "folder", text: `write to the folder ${quoted(folder)} (${key})`, given: isSet([key]) }]
    }),
  )
  return all.flat()
}
