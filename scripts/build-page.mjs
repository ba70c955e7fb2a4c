// The page of gigpo view: one script, one style sheet, in dist/view/page, with the licences of what is bundled in it.
import { copyFile } from "node:fs/promises"
import { build } from "esbuild"

const [from, to] = ["src/view/page", "dist/view/page"]
const options = {
  bundle: true,
  target: ["chrome123", "firefox120", "safari17.5"], // where light-dark() is known
  minify: true,
  logLevel: "warning",
}
// Workers are part of the one script, as text: a report has no other file, and the server need not name them.
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
