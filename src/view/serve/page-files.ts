import { readdir, readFile } from "node:fs/promises"
import { extname, join } from "node:path"
import { GigpoError } from "../../util/errors.ts"
import { packageFolder } from "../../util/version.ts"

/** A file of the page. */
export interface PageFile {
  readonly type: string
  readonly bytes: Buffer<ArrayBuffer>
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
}

/**
 * The page as it was built, by its files' names. It is read once, and no path is ever made of what somebody asks for.
 *
 * @throws GigpoError `IO` where it was not built.
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
      `The page that shows runs is not in ${folder}. Install gigpo again; in a checkout, npm run build:ts builds it.`,
      { cause },
    )
  }
}
