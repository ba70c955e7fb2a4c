// Digest of the native addon's sources. A prebuilt binary is recorded with the digest of its sources, so that an outdated binary is detected.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"

/** Source files of the addon, relative to the package's folder, sorted. */
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

/** Problems of the prebuilt binaries in a package's folder; empty if there are no problems or no binaries. */
export function stalePrebuilds(root) {
  const folder = join(root, "prebuilds")
  if (!existsSync(folder)) return []
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const sources = sourcesDigest(root)
  return readdirSync(folder).flatMap((platform) => {
    const record = join(folder, platform, "build.json")
    if (!existsSync(record)) return [`prebuilds/${platform} has no build.json with its sources.`]
    const built = JSON.parse(readFileSync(record, "utf8"))
    const binaries = readdirSync(join(folder, platform)).filter((name) => name.endsWith(".node"))
    if (built.version !== version) return [`prebuilds/${platform} is of version ${built.version}, not ${version}.`]
    if (built.sources !== sources) return [`prebuilds/${platform} was built from other sources than these.`]
    if (binaries.join() !== built.file) return [`prebuilds/${platform} holds [${binaries}] instead of ${built.file}.`]
    return []
  })
}
