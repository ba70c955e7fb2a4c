import { type FileHandle, open, stat } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { io, isMissing } from "../../files/io-error.ts"
import { specialError } from "../../files/regular-file.ts"
import { badGguf, type GgufHeader, type GgufTensor, MoreBytesNeeded, parseGguf } from "./metadata.ts"

/** Bytes of a file that are parsed first. The header of a model with 50,000 tokens fits. */
const firstBytes = 4 * 2 ** 20
/** Maximum size of a header in bytes. With a vocabulary of 262,144 tokens, a header has 7 MB. */
const mostBytes = 256 * 2 ** 20
/** Maximum number of parts of a model, all of which are open at once. */
const mostParts = 512

/** Open GGUF file with a parsed header, or the first of several parts with the tensors of all. */
export interface GgufFile extends Pick<GgufHeader, "metadata"> {
  readonly path: string
  /** In the order of the parts, and of the bytes in a part. */
  readonly tensors: ReadonlyMap<string, GgufTensor>
  /** Fills `target` with the bytes of a tensor from one of them on. */
  readonly read: (tensor: GgufTensor, target: Uint8Array, from: number) => Promise<void>
  readonly close: () => Promise<void>
}

/** One file. */
interface Part extends GgufHeader {
  readonly path: string
  readonly handle: FileHandle
}

/**
 * Opens a GGUF file and parses the header. For the first part of a split model, the other parts are opened too. The files stay open until
 * the caller closes them.
 *
 * @throws GigpoError `BAD_MODEL` for a damaged file, parts that are missing or do not belong together, or a header beyond 256 MiB;
 * `UNSAFE_PATH` for a pipe or device; `IO`.
 */
export async function openGguf(path: string): Promise<GgufFile> {
  const parts = [await openPart(path, headerOf)]
  const close = async () => {
    for (const { handle } of parts) await handle.close()
  }
  try {
    for (const other of otherParts(path, parts[0]!)) parts.push(await openOther(other, path, parts.length))
    return { path, metadata: parts[0]!.metadata, ...joined(path, parts), close }
  } catch (error) {
    await close()
    throw error
  }
}

type ReadHeader = (handle: FileHandle, path: string) => Promise<GgufHeader>

async function openPart(path: string, read: ReadHeader): Promise<Part> {
  // Checked before opening, since opening a pipe waits for its writer.
  if (!(await io("read", path, stat(path))).isFile()) throw specialError(path)
  const handle = await io("open", path, open(path, "r"))
  try {
    return { path, handle, ...(await read(handle, path)) }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Name of one part of a split model, as llama-gguf-split writes it. */
const named = /-(\d{5})-of-(\d{5})\.gguf$/i

/** Returns the paths of the further parts of a split model, which are next to the first and named after it. */
function otherParts(path: string, { metadata }: Part): string[] {
  const count = metadata.get("split.count") ?? 1
  if (count === 1 || count === 0) return []
  if (typeof count !== "number" || count > mostParts)
    throw badGguf(path, `it is one of ${String(count)} parts; join them with llama-gguf-split --merge`)
  const [suffix, number, of] = named.exec(basename(path)) ?? []
  const nameOf = (part: number) => `-${String(part).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.gguf`
  if (suffix === undefined || Number(of) !== count)
    throw badGguf(
      path,
      `it is one of ${count} parts, but its name does not end with ${nameOf(1)}, after which the others are named`,
    )
  const start = path.slice(0, -suffix.length)
  if (Number(number) !== 1 || metadata.get("split.no") !== 0)
    throw badGguf(path, `it is one of ${count} parts; give the first, ${basename(start)}${nameOf(1)}`)
  const extension = path.slice(-".gguf".length)
  return Array.from({ length: count - 1 }, (_, i) => `${start}${nameOf(i + 2).slice(0, -extension.length)}${extension}`)
}

async function openOther(path: string, first: string, number: number): Promise<Part> {
  if (!(await stat(path).catch((cause) => (isMissing(cause) ? undefined : Promise.reject(cause)))))
    throw badGguf(first, `its part ${basename(path)} is missing in ${dirname(join(first))}`)
  const part = await openPart(path, readHeader)
  if (part.metadata.get("split.no") === number) return part
  await part.handle.close()
  throw badGguf(path, `its name says part ${number + 1}, but it contains another one`)
}

/** Returns the tensors of all parts. */
function joined(path: string, parts: readonly Part[]): Pick<GgufFile, "tensors" | "read"> {
  const tensors = new Map<string, GgufTensor>()
  const places = new Map<GgufTensor, Part>()
  for (const part of parts) {
    for (const [name, tensor] of [...part.tensors].sort(([, a], [, b]) => a.offset - b.offset)) {
      if (tensors.has(name))
        throw badGguf(part.path, `another part has its tensor ${JSON.stringify(name.slice(0, 80))}`)
      tensors.set(name, tensor)
      places.set(tensor, part)
    }
  }
  const count = parts[0]!.metadata.get("split.tensors.count")
  if (parts.length > 1 && count !== tensors.size)
    throw badGguf(path, `its parts have ${tensors.size} tensors instead of ${String(count)}`)
  const read: GgufFile["read"] = async (tensor, target, from) => {
    const { handle, path, start } = places.get(tensor)!
    await readAt(handle, path, target, start + tensor.offset + from)
  }
  return { tensors, read }
}

/** Milliseconds for which the last header is kept. */
const kept = 10_000
let last: { readonly mark: string; readonly header: GgufHeader } | undefined
let forgetting: NodeJS.Timeout | undefined

/** Returns the header of a file. Opening a model needs it for the configuration, the weights and the tokenizer, and parses it once. */
async function headerOf(handle: FileHandle, path: string): Promise<GgufHeader> {
  const { dev, ino, size, mtimeNs, ctimeNs } = await io("read", path, handle.stat({ bigint: true }))
  const mark = [path, dev, ino, size, mtimeNs, ctimeNs].join(":")
  if (last?.mark !== mark) last = { mark, header: await readHeader(handle, path) }
  const { header } = last
  clearTimeout(forgetting)
  forgetting = setTimeout(() => {
    last = undefined
  }, kept).unref()
  return header
}

async function readHeader(handle: FileHandle, path: string): Promise<GgufHeader> {
  const { size } = await io("read", path, handle.stat())
  for (let length = Math.min(firstBytes, size); ; length = Math.min(length * 4, size)) {
    const bytes = Buffer.alloc(length)
    await readAt(handle, path, bytes, 0)
    try {
      return parseGguf(bytes, size, path)
    } catch (error) {
      if (!(error instanceof MoreBytesNeeded)) throw error
      if (length === size) throw badGguf(path, "it ends within its header: the download is incomplete")
      if (length >= mostBytes) throw badGguf(path, "its header has more than 256 MiB")
    }
  }
}

/** Fills `target` from a position of the file; one read may return less than requested. */
async function readAt(handle: FileHandle, path: string, target: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < target.length; ) {
    const { bytesRead } = await io("read", path, handle.read(target, done, target.length - done, position + done))
    if (bytesRead === 0) throw badGguf(path, `it ended at byte ${position + done} while it was read`)
    done += bytesRead
  }
}
