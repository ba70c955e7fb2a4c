// Builds the page of gigpo view in dist/view/page: one script and one style sheet, with the licences of the bundled packages.
import { copyFile, readFile } from "node:fs/promises"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"

const [from, to] = ["src/view/page", "dist/view/page"]
const options = {
  bundle: true,
  target: ["chrome123", "firefox120", "safari17.5"], // the first versions with light-dark()
  minify: true,
  charset: "utf8", // modules are always UTF-8, and an escape takes twice the bytes
  legalComments: "none", // they refer to files that are not part of a report
  logLevel: "warning",
}
// The worker is part of the script because a report has no other file and the server serves no other script. Packed, it has a third of the bytes.
const worker = await build({
  ...options,
  entryPoints: [`${from}/graph/layout-worker.ts`],
  format: "iife",
  write: false,
})
await build({
  ...options,
  entryPoints: [`${from}/main.ts`, `${from}/main.css`],
  outdir: to,
  format: "esm",
  define: { LAYOUT_WORKER: JSON.stringify(gzipSync(worker.outputFiles[0].contents, { level: 9 }).toString("base64")) },
  footer: { js: `/*!\n${await licences("uplot", "@dagrejs/dagre")}\n*/` },
})
await copyFile(`${from}/index.html`, `${to}/index.html`)

/** Copyright lines of packages, and the text of the licence that they share, once. */
async function licences(...packages) {
  const texts = await Promise.all(packages.map((name) => readFile(`node_modules/${name}/LICENSE`, "utf8")))
  const lines = texts.map((text) => text.match(/^Copyright .*$/m)[0])
  const permissions = new Set(texts.map((text) => text.slice(text.indexOf("Permission")).trim()))
  if (permissions.size !== 1) throw new Error(`${packages.join(" and ")} have different licences.`)
  return [...packages.map((name, at) => `${name}: ${lines[at]}`), ...permissions].join("\n")
}
