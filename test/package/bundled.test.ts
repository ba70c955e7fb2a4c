import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

// A program with gigpo in it, as bundlers make it: what needs the package's other files says what to do, the rest works.
const root = fileURLToPath(new URL("../..", import.meta.url))
const project = mkdtempSync(join(tmpdir(), "gigpo-bundled-"))

const program = `import { gigpoAdvantages } from "gigpo/advantages"
import { deviceReport } from "gigpo/native"
import { openView } from "gigpo/view"
import { version } from "gigpo-version"
const told = async (call) => {
  try {
    return typeof (await call())
  } catch ({ code, message }) {
    return { code, message }
  }
}
const view = async () => {
  await using opened = await openView([], { port: 0 })
  return opened
}
Promise.all([told(deviceReport), told(view)]).then(([native, page]) =>
  console.log(JSON.stringify({ pure: typeof gigpoAdvantages, version, native, page })),
)
`

beforeAll(() => {
  mkdirSync(join(project, "node_modules"))
  mkdirSync(join(project, "out"))
  symlinkSync(root, join(project, "node_modules/gigpo"))
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "project", version: "9.9.9", type: "module" }))
  writeFileSync(join(project, "program.mjs"), program)
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

async function bundled(format: "esm" | "cjs", external: readonly string[]) {
  const outfile = join(project, `out/${format}-${external.length}.${format === "esm" ? "mjs" : "cjs"}`)
  await build({
    entryPoints: [join(project, "program.mjs")],
    ...{ bundle: true, platform: "node", target: "node20", format, outfile, logLevel: "silent" },
    external: ["better-sqlite3", ...external],
    alias: { "gigpo-version": join(root, "modules/util/version.js") },
    // What a CommonJS dependency requires; the usual way for ESM.
    ...(format === "esm" && {
      banner: {
        js: 'import { createRequire as requireAt } from "node:module"; const require = requireAt(import.meta.url);',
      },
    }),
  })
  const { status, stdout, stderr } = spawnSync(process.execPath, [outfile], { cwd: project, encoding: "utf8" })
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(stdout)
}

describe.each(["esm", "cjs"] as const)("a bundle of format %s", (format) => {
  it("with gigpo inside explains how to exclude it, and never takes the project for gigpo", async () => {
    const { pure, version, native, page } = await bundled(format, [])
    expect([pure, version]).toEqual(["function", "bundled"])
    for (const { code, message } of [native, page]) {
      expect(code).toBe("NATIVE_MISSING")
      for (const hint of ["esbuild: --external:gigpo;", "serverExternalPackages", "webpack: externals", "Vite:"])
        expect(message).toContain(hint)
      expect(message).not.toMatch(/cmake-js|Install gigpo/)
    }
  })

  it("with gigpo external has all of it", async () => {
    const { pure, native, page } = await bundled(format, ["gigpo"])
    expect([pure, native, page.code]).toEqual(["function", "object", "BAD_ARGUMENT"]) // no run was named; the page was read
  })
})
