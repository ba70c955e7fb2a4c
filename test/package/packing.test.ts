import { spawnSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"

// How the packages are made: gigpo, and one with the addon for each platform.
const root = fileURLToPath(new URL("../..", import.meta.url))
const script = (name: string) => import(new URL(`../../scripts/${name}.mjs`, import.meta.url).href)
const { prebuiltProblems, sourcesDigest } = await script("package-sources")
const { mainManifest, platformManifest } = await script("package-manifests")
const { platformOf, platforms, prebuiltFile, recordFile } = await script("platforms")
const packageJson = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const { version } = packageJson
const names: string[] = Object.keys(platforms)

const folder = mkdtempSync(join(tmpdir(), "package-sources-"))
for (const name of ["package.json", "CMakeLists.txt", "binding", "core", "cuda", "scripts"])
  cpSync(join(root, name), join(folder, name), { recursive: true })
afterAll(() => rmSync(folder, { recursive: true }))

function record(platform: string, fields: object) {
  const file = recordFile(folder, platform)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify({ version, sources: sourcesDigest(folder), ...fields }))
}

describe("a prebuilt addon that is stale", () => {
  it.each(["linux-x64", "darwin-arm64"])("for %s is noticed, whatever changed", (platform) => {
    const problems = () => prebuiltProblems(folder, platform)
    expect(problems()).toEqual([expect.stringMatching(/^prebuilds\/.*\.node is missing\.$/)])
    const file = prebuiltFile(folder, platform)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, "")
    expect(problems()).toEqual([expect.stringMatching(/\.node has no prebuilds\/.*\.json with its sources\.$/)])
    record(platform, {})
    expect(problems()).toEqual([])
    record(platform, { version: "0.0.9" })
    expect(problems()).toEqual([expect.stringMatching(/is of version 0\.0\.9, not /)])
    record(platform, {})
    writeFileSync(join(folder, "cuda/new.cu"), "")
    expect(problems()).toEqual([expect.stringMatching(/was built from other sources than these/)])
    rmSync(join(folder, "cuda/new.cu"))
    expect(problems()).toEqual([])
  })
})

describe("packing", () => {
  const run = (...args: readonly string[]) =>
    spawnSync(process.execPath, args.slice(), { cwd: folder, encoding: "utf8", env: process.env })

  it("is rejected, with the commands that help, where an addon is missing", () => {
    const { status, stderr } = run("scripts/package-pack.mjs", "linux-arm64", "win32-x64")
    expect(status).toBe(1)
    for (const file of ["linux-arm64/gigpo.glibc.node", "win32-x64/gigpo.node"])
      expect(stderr).toMatch(`prebuilds/${file} is missing`)
    expect(stderr).toMatch("npm run package:cross")
  })

  it("is rejected for a platform that does not exist", () => {
    const { status, stderr } = run("scripts/package-pack.mjs", "linux-riscv64")
    expect(status).toBe(1)
    expect(stderr).toMatch(`linux-riscv64 is not a platform. Platforms: ${names.join(", ")}.`)
  })

  it("the repository's folder directly is rejected: its package.json lacks the addons", () => {
    expect(packageJson.scripts.prepack).toBe("node scripts/package-prepack.mjs")
    const { status, stderr } = run("scripts/package-prepack.mjs")
    expect([status, stderr]).toEqual([1, expect.stringMatching("npm run package")])
  })
})

describe("the packages", () => {
  it("npm selects exactly one of by system, processor and C library", () => {
    const selected = names.map((name) => {
      const { os, cpu, libc } = platformManifest(packageJson, name)
      return JSON.stringify([os, cpu, libc])
    })
    expect(new Set(selected).size).toBe(names.length)
    expect(selected[names.indexOf("linux-x64")]).toBe('[["linux"],["x64"],["glibc"]]')
    expect(selected[names.indexOf("darwin-arm64")]).toBe('[["darwin"],["arm64"],null]')
    for (const name of names) expect(platformOf(platforms[name])).toBe(name)
  })

  it("have the names by which gigpo loads them, and its version", () => {
    const { optionalDependencies, scripts, devDependencies, dependencies } = mainManifest(packageJson, names)
    expect(scripts ?? devDependencies).toBeUndefined()
    expect(dependencies).toEqual(packageJson.dependencies)
    expect(Object.keys(optionalDependencies)).toEqual(names.map((name) => platformManifest(packageJson, name).name))
    expect(new Set(Object.values(optionalDependencies))).toEqual(new Set([version]))
    expect(platformManifest(packageJson, "linux-arm64-musl")).toMatchObject({
      name: "@gigpo/linux-arm64-musl",
      version,
      engines: packageJson.engines,
    })
  })
})
