import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll } from "vitest"

const folder = fileURLToPath(new URL("../../../../shared/data/alfworld/", import.meta.url))

/** Episodes that ALFWorld's own engine played. */
export const traces = join(folder, "traces.jsonl.gz")
const archive = join(folder, "games.tar.xz")

export const present = existsSync(archive) && existsSync(traces)
export const reason = present ? "" : " (skipped: ../shared/data/alfworld is not there)"

/** Unpacks ALFWorld's own games for the tests of a file; gives the folder around `json_2.1.1`. */
export function useArchive(): () => string {
  let unpacked: string | undefined
  beforeAll(() => {
    if (!present) return
    unpacked = mkdtempSync(join(tmpdir(), "gigpo-alfworld-"))
    execFileSync("tar", ["xJf", archive, "-C", unpacked, "--exclude", "initial_state.pddl"])
  })
  afterAll(() => {
    if (unpacked !== undefined) rmSync(unpacked, { recursive: true })
  })
  return () => unpacked!
}
