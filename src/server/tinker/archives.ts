import { randomUUID } from "node:crypto"
import { createReadStream } from "node:fs"
import { stat } from "node:fs/promises"
import { join } from "node:path"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { pack } from "tar-stream"
import { adapterFiles } from "../../model-files/adapter-files.ts"
import { ApiError } from "../api-error.ts"

/** Milliseconds that an address is good for. */
const lifetime = 7_200_000

/** Archives of adapters, at addresses that need no key and that nobody can guess, for a while: clients ask for them without one. */
export class Archives {
  readonly #offered = new Map<string, { readonly directory: string; readonly until: number }>()

  /** The address of a folder's adapter. */
  offer(directory: string): string {
    const now = performance.now()
    for (const [token, { until }] of this.#offered) if (until < now) this.#offered.delete(token)
    const token = randomUUID()
    this.#offered.set(token, { directory, until: now + lifetime })
    return `/downloads/${token}`
  }

  /** @throws ApiError 404 for an address that was not given, or is no good any more. */
  async open(token: string): Promise<Response> {
    const offered = this.#offered.get(token)
    if (!offered || offered.until < performance.now()) throw new ApiError(404, "There is no such archive.")
    const paths = adapterFiles.map((name) => ({ name, path: join(offered.directory, name) }))
    const sizes = await Promise.all(paths.map(async ({ path }) => (await stat(path)).size))
    const archive = pack()
    const write = async () => {
      for (const [i, { name, path }] of paths.entries())
        await pipeline(createReadStream(path), archive.entry({ name, size: sizes[i]! }))
      archive.finalize()
    }
    void write().catch((error: unknown) => archive.destroy(error as Error))
    return new Response(Readable.toWeb(Readable.from(archive)) as ReadableStream, {
      headers: { "content-type": "application/x-tar" },
    })
  }
}
