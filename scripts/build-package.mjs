// Bundles the entry points and the command line into dist/, which is what users load. Loading about 90 files takes half of the time of
// loading about 270. tsc has written dist/*.d.ts, and modules/, which has one file per module for benchmarks and tests of internals.
import { copyFile, mkdir, readdir } from "node:fs/promises"
import { build } from "esbuild"

const entries = (await readdir("src/entries", { recursive: true })).filter((name) => name.endsWith(".ts"))

/** CommonJS files stay files: an old version of Node must be able to load them before anything else. */
const commonJs = {
  name: "commonjs",
  setup: (bundle) =>
    bundle.onResolve({ filter: /\.cts$/ }, ({ path }) => ({ path: path.replace(/\.cts$/, ".cjs"), external: true })),
}

await build({
  entryPoints: [...entries.map((name) => `src/entries/${name}`), "src/cli/main.ts"],
  outbase: "src",
  outdir: "dist",
  // One folder below dist/, as the entry points: code that looks for the package's folder goes two levels up.
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  packages: "external",
  plugins: [commonJs],
  format: "esm",
  platform: "node",
  target: "node20.19",
  minifyWhitespace: true, // a fifth shorter; names in stack traces stay
  lineLimit: 160, // an uncaught error prints its line
  sourcemap: "linked",
  sourcesContent: false, // src/ is part of the package
  logLevel: "warning",
})
await mkdir("dist/cli", { recursive: true })
for (const name of ["check-node.cjs", "cli/launch.cjs"]) await copyFile(`modules/${name}`, `dist/${name}`)
