import { randomUUID } from "node:crypto"
import type { FileHandle } from "node:fs/promises"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { pack } from "tar-stream"
import { ApiError } from "../chat/api-error.ts"
import { inside } from "../files/inside.ts"
import { openRegular } from "../files/regular-file.ts"
import { adapterFiles } from "../model-files/adapter-files.ts"
import type { KeptWeights } from "./kept-weights.ts"

/** Milliseconds that a download address is valid. */
const lifetime = 7_200_000

interface Offer {
  readonly token: string
  readonly path: string
  readonly until: number
}

/** Archives of adapters. Clients download them without a key, at random addresses that are valid for two hours. */
export class Archives {
  readonly #kept: KeptWeights
  readonly #byToken = new Map<string, Offer>()
  /** Newest address of each path. It is reused for an hour, so that a checkpoint has only a few addresses. */
  readonly #byPath = new Map<string, Offer>()

  constructor(kept: KeptWeights) {
    this.#kept = kept
  }

  /** Number of stored addresses. */
  get size(): number {
    return this.#byToken.size
  }

  /** Returns the download address of the adapter at tinker://<model>/<kind>/<name>. */
  offer(path: string): string {
    const now = performance.now()
    for (const offer of this.#byToken.values()) if (offer.until < now) this.#forget(offer)
    const before = this.#byPath.get(path)
    const offer =
      before && before.until - now > lifetime / 2 ? before : { token: randomUUID(), path, until: now + lifetime }
    this.#byToken.set(offer.token, offer)
    this.#byPath.set(path, offer)
    return `/downloads/${offer.token}`
  }

  /** Returns the archive at an address. Throws `ApiError` 404 for an unknown or expired address and for deleted weights. */
  async open(token: string): Promise<Response> {
    const offer = this.#byToken.get(token)
    if (!offer || offer.until < performance.now())
      throw new ApiError(404, "The archive does not exist or its address has expired.")
    // Files that are open stay readable when the weights are replaced or deleted.
    const files = await this.#kept.using(offer.path, ({ directory }) => openAll(directory))
    const archive = pack()
    const write = async () => {
      for (const { name, size, file } of files) await pipeline(file.createReadStream(), archive.entry({ name, size }))
      archive.finalize()
    }
    const close = () => Promise.all(files.map(({ file }) => file.close().catch(() => {})))
    void write()
      .catch((error: unknown) => archive.destroy(error as Error))
      .finally(close)
    return new Response(Readable.toWeb(Readable.from(archive)) as ReadableStream, {
      headers: { "content-type": "application/x-tar" },
    })
  }

  #forget(offer: Offer): void {
    this.#byToken.delete(offer.token)
    if (this.#byPath.get(offer.path) === offer) this.#byPath.delete(offer.path)
  }
}

async function openAll(directory: string): Promise<{ name: string; size: number; file: FileHandle }[]> {
  const opened: { name: string; size: number; file: FileHandle }[] = []
  try {
    for (const name of adapterFiles) {
      const file = await openRegular(await inside(directory, name))
      opened.push({ name, size: 0, file })
      opened.at(-1)!.size = (await file.stat()).size
    }
    return opened
  } catch (error) {
    for (const { file } of opened) await file.close()
    throw error
  }
}
