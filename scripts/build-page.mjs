// Builds the page of gigpo view in dist/view/page: one script and one style sheet, with the licences of the bundled packages.
import { copyFile } from "node:fs/promises"
import { build } from "esbuild"

const [from, to] = ["src/view/page", "dist/view/page"]
const options = {
  bundle: true,
  target: ["chrome123", "firefox120", "safari17.5"], // the first versions with light-dark()
  minify: true,
  charset: "utf8", // modules are always UTF-8, and an escape takes twice the bytes
  logLevel: "warning",
}
// The worker is part of the script, as text, because a report has no other file and the server serves no other script.
const worker = await build({
  ...options,
  entryPoints: [`${from}/graph/layout-worker.ts`],
  format: "iife",
  legalComments: "inline",
  write: false,
})
await build({
  ...options,
  entryPoints: [`${from}/main.ts`, `${from}/main.css`],
  outdir: to,
  format: "esm",
  legalComments: "eof",
  define: { LAYOUT_WORKER: JSON.stringify(worker.outputFiles[0].text) },
})
await copyFile(`${from}/index.html`, `${to}/index.html`)
