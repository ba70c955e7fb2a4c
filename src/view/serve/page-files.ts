import { readdir, readFile } from "node:fs/promises"
import { extname, join } from "node:path"
import { gzipSync } from "node:zlib"
import { GigpoError } from "../../util/errors.ts"
import { packageFolder } from "../../util/version.ts"

/** File of the page. */
export interface PageFile {
  readonly type: string
  readonly bytes: Buffer<ArrayBuffer>
}

/** File of the page with its compressed bytes. */
export interface ServedFile extends PageFile {
  readonly packed: Buffer<ArrayBuffer>
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
}

/**
 * Files of the built page by name. They are read once, and requested names are never used as paths.
 *
 * @throws GigpoError `IO` if the page was not built
 */
export async function readPage(
  folder = join(packageFolder(), "dist/view/page"),
): Promise<ReadonlyMap<string, PageFile>> {
  try {
    const names = (await readdir(folder)).filter((name) => extname(name) in types)
    const files = await Promise.all(
      names.map(
        async (name) => [name, { type: types[extname(name)]!, bytes: await readFile(join(folder, name)) }] as const,
      ),
    )
    const page = new Map(files)
    for (const name of ["index.html", "main.js", "main.css"])
      if (!page.has(name)) throw new Error(`there is no ${name}`)
    return page
  } catch (cause) {
    throw new GigpoError(
      "IO",
      `The page of gigpo view is missing in ${folder}. Install gigpo again; in a checkout, run npm run build:ts.`,
      { cause },
    )
  }
}

/** Files of the built page, compressed once for all clients. Errors as for `readPage`. */
export async function servedPage(): Promise<ReadonlyMap<string, ServedFile>> {
  return new Map(
    [...(await readPage())].map(([name, file]) => [name, { ...file, packed: gzipSync(file.bytes, { level: 9 }) }]),
  )
}
