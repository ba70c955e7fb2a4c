import { createHash, type Hash } from "node:crypto"
import { constants } from "node:fs"
import { type FileHandle, open, rename, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { flush } from "../files/flush.ts"
import { io } from "../files/io-error.ts"
import { hasBlob, type Place } from "./cache.ts"
import { badAnswer, lost } from "./errors.ts"
import type { HubFile } from "./listing.ts"
import { type HubRequest, request, waitBeforeRetry } from "./request.ts"

/** Bytes per read of a partial download. */
const piece = 2 ** 20
const { O_CREAT, O_RDWR, O_NOFOLLOW = 0 } = constants

/**
 * Returns the path of a partial download. The extension is that of huggingface_hub, so that its tools delete such files. The name differs
 * from that library's, which writes to its partial files under locks (flock) that Node.js cannot see.
 */
export function partialOf({ blobs }: Place, { blob }: HubFile): string {
  return join(blobs, `${blob}.gigpo.incomplete`)
}

/**
 * Downloads a file of a commit into the repository's blobs and resumes an interrupted download. The file gets its final name after its
 * size and digest have been checked. The caller must hold the blob's lock.
 *
 * @param onBytes - receives the number of bytes downloaded so far.
 * @throws GigpoError `HUB_LOST`, `HUB_REJECTED`, `IO`; the reason of the signal
 */
export async function downloadBlob(
  hubRequest: HubRequest,
  place: Place,
  { commit, file }: { readonly commit: string; readonly file: HubFile },
  onBytes: (done: number) => void,
): Promise<void> {
  if (await hasBlob(place, file)) return onBytes(file.size)
  const path = partialOf(place, file)
  const handle = await io("create", path, open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o644))
  try {
    const partial = new Partial(path, handle, file, onBytes)
    await partial.reopen(hubRequest.signal)
    const begun = partial.done > 0
    await fill(hubRequest, partial, commit)
    if (!partial.isRight && begun) {
      // The partial file from an earlier download was corrupt: a crash may leave blocks of zeros.
      await partial.clear()
      await fill(hubRequest, partial, commit)
    }
    if (!partial.isRight) {
      await io("remove", path, rm(path, { force: true }))
      throw badAnswer(hostOf(hubRequest), `the digest of ${file.path} differs from its listing (${file.blob})`)
    }
    await io("write", path, handle.sync())
  } finally {
    await handle.close()
  }
  const target = join(place.blobs, file.blob)
  await io("write", target, rename(path, target))
  await io("write", target, flush(dirname(target)))
}

/** Requests the missing bytes until the file is complete. The number of attempts is reset whenever bytes arrive. */
async function fill(hubRequest: HubRequest, partial: Partial, commit: string): Promise<void> {
  const { settings, name } = hubRequest
  const path = partial.file.path.split("/").map(encodeURIComponent).join("/")
  const url = `${settings.endpoint}/${name.repository}/resolve/${commit}/${path}`
  for (let attempt = 1; partial.missing > 0; attempt++) {
    const before = partial.done
    try {
      await fetchRest(hubRequest, url, partial)
    } catch (error) {
      if (partial.done > before) attempt = 1
      await waitBeforeRetry(hubRequest, attempt, error)
    }
  }
}

async function fetchRest(hubRequest: HubRequest, url: string, partial: Partial): Promise<void> {
  const { file } = partial
  const host = hostOf(hubRequest)
  const headers = partial.done > 0 ? { range: `bytes=${partial.done}-` } : {}
  await request(hubRequest, url, { headers, accept: [416] }, async (response, alive) => {
    if (response.status === 416) {
      await partial.clear()
      throw lost(host, `does not send the rest of ${file.path}`)
    }
    if (response.status !== 206) await partial.clear()
    else checkRange(response.headers.get("content-range"), partial, host)
    const length = Number(response.headers.get("content-length") ?? 0)
    if (length > partial.missing) await refuseLonger(partial, host)
    for await (const chunk of response.body ?? []) {
      alive()
      if (chunk.length > partial.missing) await refuseLonger(partial, host)
      await partial.add(chunk)
      hubRequest.signal?.throwIfAborted()
    }
    if (partial.missing > 0)
      throw lost(host, `ended the download of ${file.path} after ${partial.done} of ${file.size} bytes`)
  })
}

function checkRange(range: string | null, { done, file }: Partial, host: string): void {
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range ?? "") ?? []
  if (Number(start) === done && (total === "*" || Number(total) === file.size)) return
  throw badAnswer(host, `the part of ${file.path} is not the requested one`)
}

async function refuseLonger(partial: Partial, host: string): Promise<never> {
  await partial.clear()
  throw badAnswer(host, `${partial.file.path} is longer than the ${partial.file.size} bytes in its listing`)
}

function hostOf({ settings }: HubRequest): string {
  return new URL(settings.endpoint).host
}

/** Partial download of a file, with the digest of the bytes so far. */
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

  /** Whether the file is complete and has the expected digest. */
  get isRight(): boolean {
    return this.missing === 0 && this.#hash.copy().digest("hex") === this.file.blob
  }

  /** Continues from the bytes of an earlier download. */
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

  /** Deletes the downloaded bytes. */
  async clear(): Promise<void> {
    await io("write", this.#path, this.#handle.truncate(0))
    this.#hash = hashOf(this.file)
    this.#done = 0
    this.#onBytes(0)
  }

  /** Writes at an explicit position, so that the bytes of a failed write are overwritten by the next one. */
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

/** Hash that names a blob: SHA-256 for a large file; for a small one git's digest, SHA-1 of its length and content. */
function hashOf({ blob, size }: HubFile): Hash {
  return blob.length === 64 ? createHash("sha256") : createHash("sha1").update(`blob ${size}\0`)
}
