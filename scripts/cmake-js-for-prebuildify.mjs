// prebuildify calls `node-gyp rebuild --target=<node version> --devdir=… --arch=… --release`; cmake-js would take --target for
// a CMake target. This passes on what cmake-js knows.
import { spawnSync } from "node:child_process"
import { createRequire } from "node:module"

const cmakeJs = createRequire(import.meta.url).resolve("cmake-js/bin/cmake-js")
const known = process.argv.slice(2).filter((argument) => argument.startsWith("--arch=") || argument === "--debug")
const { status } = spawnSync(process.execPath, [cmakeJs, "rebuild", ...known], { stdio: "inherit" })
process.exit(status ?? 1)
