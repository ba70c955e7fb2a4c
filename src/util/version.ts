import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { GigpoError } from "./errors.ts"

/** The file of this module; undefined where a bundler wrote CommonJS. */
const here: string | undefined = import.meta.url

const root: string | undefined = here && ownFolder(new URL("../..", here))

/** This package's version; "bundled" where that is not known. */
export const version: string = root === undefined ? "bundled" : packageOf(new URL("../..", here)).version

/**
 * This package's folder.
 *
 * @throws GigpoError `NATIVE_MISSING` where a bundler put this file elsewhere, so that none of the package's other files are near
 */
export function packageFolder(): string {
  if (root !== undefined) return root
  throw new GigpoError(
    "NATIVE_MISSING",
    "A bundler put gigpo's code into another file, away from its native addon and its other files. Mark gigpo as external, so that it " +
      'is loaded from node_modules: esbuild: --external:gigpo; Vite: build.rollupOptions.external: ["gigpo"]; webpack: externals: ' +
      '{ gigpo: "module gigpo" }; Next.js: serverExternalPackages: ["gigpo"].',
  )
}

function ownFolder(folder: URL): string | undefined {
  try {
    return packageOf(folder).name === "gigpo" ? fileURLToPath(folder) : undefined
  } catch {
    return undefined
  }
}

function packageOf(folder: URL): { readonly name?: string; readonly version: string } {
  return JSON.parse(readFileSync(new URL("package.json", folder), "utf8"))
}
