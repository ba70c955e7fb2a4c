// Reads gigpo's package as other tools do: publint looks for mistakes in package.json, and "are the types wrong" resolves every entry point as
// TypeScript does. Each runs by npx: they are no dependencies. Throws an error with what they found.
//
//   npm run package && npm run package:read
import { tmpdir } from "node:os"
import { mainTarball, npm, run } from "./package-user.mjs"

const tools = [
  ["publint@0.3.25", "--strict"],
  ["@arethetypeswrong/cli@0.18.5", "--profile", "esm-only"],
]
for (const [tool, ...options] of tools) {
  run(process.execPath, [npm, "exec", "--yes", "--", tool, mainTarball(), ...options], { cwd: tmpdir() })
  console.log(`${tool} finds nothing.`)
}
