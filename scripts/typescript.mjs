// Runs TypeScript files of this repository on every supported Node.js: node --import ./scripts/typescript.mjs <file.ts>
import { readFile } from "node:fs/promises"
import { register } from "node:module"
import { fileURLToPath } from "node:url"
import { isMainThread } from "node:worker_threads"
import { transform } from "esbuild"

// The hooks below run in a thread that Node.js starts for them, which loads this file again.
if (isMainThread) register(import.meta.url)

/** Source of a TypeScript file without its types. Other files are loaded as usual. */
export async function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context)
  const file = fileURLToPath(url)
  const { code } = await transform(await readFile(file, "utf8"), {
    loader: "ts",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    sourcefile: file,
  })
  return { format: "module", source: code, shortCircuit: true }
}
