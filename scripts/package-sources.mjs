// The sources of the native addon as one number. A prebuilt binary carries that of its own, so that one of an older state is noticed.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"

/** Every file that the addon is built from, relative to the package's folder, sorted. */
export function sourceFiles(root) {
  const files = ["binding", "core", "cuda"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(root, join(parentPath, name)).replaceAll("\\", "/")),
  )
  return ["CMakeLists.txt", ...files].sort()
}

export function sourcesDigest(root) {
  const hash = createHash("sha256")
  for (const file of sourceFiles(root)) {
    hash.update(`${file}\n${readFileSync(join(root, file), "utf8").replaceAll("\r\n", "\n")}\0`)
  }
  return hash.digest("hex")
}

/** What is wrong with the prebuilt binaries in a package's folder; empty where there are none. */
export function stalePrebuilds(root) {
  const folder = join(root, "prebuilds")
  if (!existsSync(folder)) return []
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const sources = sourcesDigest(root)
  return readdirSync(folder).flatMap((platform) => {
    const record = join(folder, platform, "build.json")
    if (!existsSync(record)) return [`prebuilds/${platform} does not say what it was built from.`]
    const built = JSON.parse(readFileSync(record, "utf8"))
    const binaries = readdirSync(join(folder, platform)).filter((name) => name.endsWith(".node"))
    if (built.version !== version) return [`prebuilds/${platform} is of version ${built.version}, not ${version}.`]
    if (built.sources !== sources) return [`prebuilds/${platform} was built from other sources than these.`]
    if (binaries.join() !== built.file) return [`prebuilds/${platform} holds [${binaries}] instead of ${built.file}.`]
    return []
  })
}
