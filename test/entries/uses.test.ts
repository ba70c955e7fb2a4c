import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { exportsOf } from "./declared.ts"
import { entryNames } from "./entries.ts"

// The compiler checks imports of examples and pages; programs in JavaScript are checked here.

const root = join(import.meta.dirname, "../..")
const names = new Map(
  entryNames.map((entry) => [entry === "index" ? "gigpo" : `gigpo/${entry}`, exportsOf(entry).map(({ name }) => name)]),
)
const programs = ["bench", "test", "scripts"].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".mjs") && !name.includes("node_modules"))
    .map((name) => join(folder, name)),
)
const imports = programs.flatMap((program) =>
  [
    ...readFileSync(join(root, program), "utf8").matchAll(
      /(?:import|const) \{([^}]*)\} (?:from |= await import\()"((?:gigpo|[./]+(?:dist|modules)\/entries)\b[^"]*)"/g,
    ),
  ].map(([, list, from]) => ({
    program,
    path: from!
      .replace(/^[./]+(?:dist|modules)\/entries\//, "gigpo/")
      .replace(/\.js$/, "")
      .replace(/\/index$/, ""),
    used: list!.split(",").flatMap(
      (one) =>
        one
          .trim()
          .split(/ as |: /)[0]!
          .replace(/^type /, "") || [],
    ),
  })),
)

it("exports everything that JavaScript programs import from it", () => {
  expect(imports.length).toBeGreaterThan(40)
  const missing = imports.flatMap(({ program, path, used }) =>
    used.filter((name) => !names.get(path)?.includes(name)).map((name) => `${program}: ${name} of ${path}`),
  )
  expect(missing).toEqual([])
})
