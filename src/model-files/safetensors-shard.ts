import { type FileHandle, open, stat } from "node:fs/promises"
import { io } from "../files/io-error.ts"
import { GigpoError } from "../util/errors.ts"
import { type HeaderEntry, malformed, maxHeaderBytes, parseSafetensorsHeader } from "./safetensors-header.ts"

/** Open safetensors file with a checked header. */
export interface Shard {
  readonly path: string
  readonly handle: FileHandle
  /** Position of the tensor data in the file. */
  readonly start: number
  readonly tensors: ReadonlyMap<string, HeaderEntry>
  readonly metadata: ReadonlyMap<string, string>
}

/** Opens a safetensors file and checks its header. Throws `BAD_MODEL` and `IO`. */
export async function openShard(path: string): Promise<Shard> {
  const { handle, size } = await openFile(path)
  try {
    if (size < 8) throw malformed(path, `it has only ${size} bytes`)
    const prefix = new Uint8Array(8)
    await readFully(handle, path, prefix, 0)
    const headerBytes = new DataView(prefix.buffer).getBigUint64(0, true)
    if (headerBytes > maxHeaderBytes || headerBytes > size - 8) {
      throw malformed(path, `its header claims ${headerBytes} bytes of a file of ${size} (at most ${maxHeaderBytes})`)
    }
    const header = new Uint8Array(Number(headerBytes))
    await readFully(handle, path, header, 8)
    const start = 8 + header.length
    return { path, handle, start, ...parseSafetensorsHeader(header, size - start, path) }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Reads a file of at most `maxHeaderBytes` bytes. */
export async function readSmallFile(path: string): Promise<Uint8Array> {
  const { handle, size } = await openFile(path)
  try {
    if (size > maxHeaderBytes) throw malformed(path, `it has ${size} bytes, more than ${maxHeaderBytes}`)
    const bytes = new Uint8Array(size)
    await readFully(handle, path, bytes, 0)
    return bytes
  } finally {
    await handle.close()
  }
}

/** Fills `target` from `position` on; a single read may return fewer bytes than requested. */
export async function readFully(handle: FileHandle, path: string, target: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < target.length; ) {
    const reading = handle.read(target, done, target.length - done, position + done)
    const { bytesRead } = await io("read", path, reading)
    if (bytesRead === 0) throw malformed(path, `it ended at byte ${position + done} while it was read`)
    done += bytesRead
  }
}

async function openFile(path: string): Promise<{ handle: FileHandle; size: number }> {
  // Before opening: opening a pipe would wait for its writer.
  const status = await io("read", path, stat(path))
  if (!status.isFile()) throw new GigpoError("BAD_MODEL", `${path} is not a file. Download the model again.`)
  const handle = await io("open", path, open(path, "r"))
  try {
    return { handle, size: (await io("read", path, handle.stat())).size }
  } catch (error) {
    await handle.close()
    throw error
  }
}
