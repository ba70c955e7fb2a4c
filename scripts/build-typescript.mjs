// npm run build:ts: compiles src/ to dist/ and modules/, documents the options, and bundles the package and the page of gigpo view. Does nothing if
// the sources are those of the last build.
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { root, run } from "./native-programs.mjs"

const outputs = ["dist", "modules"]
/** Digest of the last build's sources. Removed by whatever removes the output. */
const stamp = join(root, "modules", ".sources")
const sources = digest(["src", "scripts", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json"])
const isBuilt = outputs.every((name) => existsSync(join(root, name))) && existsSync(stamp)
if (isBuilt && readFileSync(stamp, "utf8") === sources) console.log("dist/ and modules/ are up to date.")
else build()

function build() {
  for (const name of outputs) rmSync(join(root, name), { recursive: true, force: true })
  run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "tsconfig.build.json"])
  for (const name of ["document-options", "build-package", "build-page"])
    run(process.execPath, [join(root, `scripts/${name}.mjs`)])
  writeFileSync(stamp, sources)
}

/** Digest of files, and of all files in folders, by name and content. */
function digest(names) {
  const hash = createHash("sha256")
  const filesIn = (name) => readdirSync(join(root, name), { recursive: true }).map((file) => join(name, String(file)))
  for (const name of names.flatMap((one) => (statSync(join(root, one)).isDirectory() ? filesIn(one) : [one])).sort())
    if (statSync(join(root, name)).isFile())
      hash
        .update(`${name}\0`)
        .update(readFileSync(join(root, name)))
        .update("\0")
  return hash.digest("hex")
}
