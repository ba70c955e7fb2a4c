import { readFileSync } from "node:fs"

/** This package's version. */
export const version: string = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version
