import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { exitCodes, failed } from "../../src/cli/fail.ts"
import type { GigpoErrorCode } from "../../src/util/errors.ts"
import { page, root } from "./pages.ts"

it("docs/errors.md has every code, its meaning in src/util/errors.ts and its exit code", () => {
  const source = readFileSync(join(root, "src/util/errors.ts"), "utf8")
  const declared = [...source.matchAll(/^ {2}\| "([A-Z_]+)" \/\/ (.+)$/gm)].map(([, code, meaning]) => [
    code!,
    meaning!,
  ])
  const rows = [...page("docs/errors.md").text.matchAll(/^\| `([A-Z_]+)` \| (.+) \| (.+) \| (.+) \| (\d) \|$/gm)]
  expect(rows.map(([, code, meaning]) => [code, meaning])).toEqual(declared)
  const exits = declared.map(([code]) => `${code} ${exitCodes[code as GigpoErrorCode] ?? failed}`)
  expect(rows.map(([, code, , , , exit]) => `${code} ${exit}`)).toEqual(exits)
})
