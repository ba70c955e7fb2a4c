import { createHash, type Hash } from "node:crypto"
import { constants } from "node:fs"
import { type FileHandle, open, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { flush } from "../files/flush.ts"
import { io } from "../files/io-error.ts"
import { hasBlob, type Place } from "./cache.ts"
import { badAnswer, lost } from "./errors.ts"
import type { HubFile } from "./listing.ts"
import { type Asking, isLost, request, waited } from "./request.ts"

/** Bytes that are read at once of what was downloaded before. */
const piece = 2 ** 20
const { O_CREAT, O_RDWR, O_NOFOLLOW = 0 } = constants

/**
 * Where a blob is downloaded to. The ending is that of huggingface_hub, whose tools clear such files away; the name is another, since that
 * library adds to its own under locks (flock) that Node.js cannot see.
 */
export function partialOf({ blobs }: Place, { blob }: HubFile): string {
  return join(blobs, `${blob}.gigpo.incomplete`)
}

/**
 * Downloads a file of a commit into the repository's blobs, from where an earlier download broke off. Its size and digest are compared
 * before it gets its name. To be called under the blob's lock.
 *
 * @param onBytes - told how many of its bytes are there.
 * @throws GigpoError `HUB_LOST`, `HUB_REFUSED`, `IO`; the reason of the signal
 */
export async function downloadBlob(
  asking: Asking,
  place: Place,
  { commit, file }: { readonly commit: string; readonly file: HubFile },
  onBytes: (done: number) => void,
): Promise<void> {
  if (await hasBlob(place, file)) return onBytes(file.size)
  const path = partialOf(place, file)
  const handle = await io("create", path, open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o644))
  try {
    const partial = new Partial(path, handle, file, onBytes)
    await partial.reopen(asking.signal)
    const begun = partial.done > 0
    await fill(asking, partial, commit)
    if (!partial.isRight && begun) {
      // What was there before was not of this file: a crash may leave blocks of nothing.
      await partial.clear()
      await fill(asking, partial, commit)
    }
    if (!partial.isRight) {
      await io("remove", path, rm(path, { force: true }))
      throw badAnswer(hostOf(asking), `${file.path} with another digest than its listing says (${file.blob})`)
    }
    await io("write", path, handle.sync())
  } finally {
    await handle.close()
  }
  const target = join(place.blobs, file.blob)
  await io("write", target, rename(path, target))
  await io("write", target, flush(dirname(target)))
}

/** Requests what is missing until all is there. Tries count anew after each byte that came. */
async function fill(asking: Asking, partial: Partial, commit: string): Promise<void> {
  const { settings, name } = asking
  const path = partial.file.path.split("/").map(encodeURIComponent).join("/")
  const url = `${settings.endpoint}/${name.repository}/resolve/${commit}/${path}`
  for (let attempt = 1; partial.missing > 0; attempt++) {
    const before = partial.done
    try {
      await fetchRest(asking, url, partial)
    } catch (error) {
      if (partial.done > before) attempt = 1
      if (!isLost(error) || attempt >= asking.tries) throw error
      await waited(asking.pause, attempt, asking.signal)
    }
  }
}

async function fetchRest(asking: Asking, url: string, partial: Partial): Promise<void> {
  const { file } = partial
  const host = hostOf(asking)
  const headers = partial.done > 0 ? { range: `bytes=${partial.done}-` } : {}
  await request(asking, url, { headers, accept: [416] }, async (response, alive) => {
    if (response.status === 416) {
      await partial.clear()
      throw lost(host, `does not have the rest of ${file.path}`)
    }
    if (response.status !== 206) await partial.clear()
    else checkRange(response.headers.get("content-range"), partial, host)
    const length = Number(response.headers.get("content-length") ?? 0)
    if (length > partial.missing) await refuseLonger(partial, host)
    for await (const chunk of response.body ?? []) {
      alive()
      if (chunk.length > partial.missing) await refuseLonger(partial, host)
      await partial.add(chunk)
      asking.signal?.throwIfAborted()
    }
    if (partial.missing > 0) throw lost(host, `ended ${file.path} after ${partial.done} of ${file.size} bytes`)
  })
}

function checkRange(range: string | null, { done, file }: Partial, host: string): void {
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range ?? "") ?? []
  if (Number(start) === done && (total === "*" || Number(total) === file.size)) return
  throw badAnswer(host, `another part of ${file.path} than was asked for`)
}

async function refuseLonger(partial: Partial, host: string): Promise<never> {
  await partial.clear()
  throw badAnswer(host, `${partial.file.path} is longer than the ${partial.file.size} bytes that its listing says`)
}

function hostOf({ settings }: Asking): string {
  return new URL(settings.endpoint).host
}

/** A file that is being downloaded, and the digest of what is there of it. */
class Partial {
  readonly file: HubFile
  readonly #path: string
  readonly #handle: FileHandle
  readonly #onBytes: (done: number) => void
  #hash: Hash
  #done = 0

  constructor(path: string, handle: FileHandle, file: HubFile, onBytes: (done: number) => void) {
    this.#path = path
    this.#handle = handle
    this.file = file
    this.#onBytes = onBytes
    this.#hash = hashOf(file)
  }

  get done(): number {
    return this.#done
  }

  get missing(): number {
    return this.file.size - this.#done
  }

  /** Whether what is there is the file. */
  get isRight(): boolean {
    return this.missing === 0 && this.#hash.copy().digest("hex") === this.file.blob
  }

  /** Takes up what an earlier download left. */
  async reopen(signal: AbortSignal | undefined): Promise<void> {
    const { size } = await io("look at", this.#path, this.#handle.stat())
    if (size > this.file.size) return await this.clear()
    const buffer = Buffer.alloc(Math.min(piece, size))
    while (this.#done < size) {
      signal?.throwIfAborted()
      const { bytesRead } = await io("read", this.#path, this.#handle.read(buffer, 0, buffer.length, this.#done))
      if (bytesRead === 0) break
      this.#take(buffer.subarray(0, bytesRead))
    }
  }

  /** Begins again. */
  async clear(): Promise<void> {
    await io("write", this.#path, this.#handle.truncate(0))
    this.#hash = hashOf(this.file)
    this.#done = 0
    this.#onBytes(0)
  }

  /** At an explicit place: what a failed write left is written over by the next. */
  async add(chunk: Uint8Array): Promise<void> {
    for (let written = 0; written < chunk.length; ) {
      const writing = this.#handle.write(chunk, written, chunk.length - written, this.#done + written)
      written += (await io("write", this.#path, writing)).bytesWritten
    }
    this.#take(chunk)
  }

  #take(bytes: Uint8Array): void {
    this.#hash.update(bytes)
    this.#done += bytes.length
    this.#onBytes(this.#done)
  }
}

/** SHA-256 of a large file; of a small one git's digest, SHA-1 of its length and content. */
function hashOf({ blob, size }: HubFile): Hash {
  return blob.length === 64 ? createHash("sha256") : createHash("sha1").update(`blob ${size}\0`)
}
