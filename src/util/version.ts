import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { GigpoError } from "./errors.ts"

/** URL of this module; undefined if a bundler produced CommonJS. */
const here: string | undefined = import.meta.url

const root: string | undefined = here && ownFolder(new URL("../..", here))

/** Version of this package; "bundled" if unknown. */
export const version: string = root === undefined ? "bundled" : packageOf(new URL("../..", here)).version

/**
 * Folder of this package.
 *
 * @throws GigpoError `NATIVE_MISSING` if a bundler moved this file away from the rest of the package
 */
export function packageFolder(): string {
  if (root !== undefined) return root
  throw new GigpoError(
    "NATIVE_MISSING",
    "A bundler moved gigpo's code away from its native addon and other files. Mark gigpo as external, so that it " +
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
