import buffer from "node:buffer"
import { closeSync, createReadStream, openSync, readSync } from "node:fs"
import { stat } from "node:fs/promises"
import { basename } from "node:path"
import { readJson } from "../../json/depth.ts"
import { GigpoError } from "../../util/errors.ts"

/** Element of a file that contains one JSON array or object. */
export interface JsonElement {
  /** Name of the member; undefined for an array. */
  readonly key: string | undefined
  readonly value: unknown
  /** File, element and position, for messages. */
  readonly where: string
}

/** Kept elements of a file, with random access. */
export interface KeptElements {
  /** Returns an element, for large files from the disk. Throws IO or BAD_DATA if the file has changed. */
  get(index: number): JsonElement
}

/** Maximum size of an element in bytes, so that a corrupt file does not fill the memory. */
const longestElement = 64 * 2 ** 20

/**
 * Reads a JSON file of any size element by element. A byte scanner finds the ends of the elements from strings and brackets only, and
 * `JSON.parse` parses each element, so the whole file is never in memory. For files above `inMemory` bytes only the positions of the kept
 * elements stay in memory.
 *
 * @param keep - called with every element in order; returns whether the element is kept
 * @throws BAD_DATA if the file cannot be read, is truncated or corrupt, with the position
 */
export async function readElements(
  path: string,
  keep: (element: JsonElement) => boolean,
  { inMemory = 32 * 2 ** 20, chunkBytes = 2 ** 18, signal }: ReadElementsOptions = {},
): Promise<KeptElements> {
  const { size } = await stat(path).catch((error: unknown) => fail("BAD_DATA", path, "cannot be read", error))
  const elements: JsonElement[] = []
  const starts: number[] = []
  const lengths: number[] = []
  const scanner = new ElementScanner(path)
  const take = (span: Span) => {
    const element = scanner.parse(span)
    if (!keep(element)) return
    if (size <= inMemory) elements.push(element)
    else {
      starts.push(span.start)
      lengths.push(span.bytes.length)
    }
  }
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: chunkBytes, ...(signal && { signal }) })) {
      for (const span of scanner.push(chunk as Buffer)) take(span)
    }
  } catch (error) {
    signal?.throwIfAborted()
    throw GigpoError.is(error) ? error : failure("BAD_DATA", path, "cannot be read", error)
  }
  scanner.end()
  if (size <= inMemory) return { get: (index) => elements[index]! }
  return {
    get: (index) =>
      scanner.parse({ start: starts[index]!, bytes: readBytes(path, starts[index]!, lengths[index]!), index }),
  }
}

export interface ReadElementsOptions {
  /** Maximum size in bytes of a file that is kept in memory. Default 32 MiB. */
  readonly inMemory?: number
  /** Bytes per read. Default 256 KiB, which takes a few milliseconds to scan and parse. */
  readonly chunkBytes?: number
  readonly signal?: AbortSignal | undefined
}

interface Span {
  /** Byte position of the element in the file. */
  readonly start: number
  readonly bytes: Uint8Array
  readonly index: number
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c]
const [arrayOpen, arrayClose, objectOpen, objectClose] = [0x5b, 0x5d, 0x7b, 0x7d]
const isSpace = (byte: number) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d)

class ElementScanner {
  readonly #path: string
  /** Bytes of the current element, followed by those not scanned yet. */
  #pending: Buffer = Buffer.alloc(0)
  /** Position of `#pending` in the file, and of the scanner in `#pending`. */
  #base = 0
  #at = 0
  /** Bracket depth: 0 before the outer bracket, 1 between elements, more inside an element; -1 after the end. */
  #depth = 0
  #inString = false
  #isObject = false
  #count = 0

  constructor(path: string) {
    this.#path = path
  }

  /** Yields the elements that end in this chunk. */
  *push(chunk: Buffer): Generator<Span> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    for (; this.#at < this.#pending.length; this.#at++) {
      if (this.#inString) {
        // The whole element is pending, so the backslashes before the closing quote can be counted.
        const end = this.#pending.indexOf(quote, this.#at)
        this.#at = end < 0 ? this.#pending.length - 1 : end
        if (end >= 0 && !this.#isEscaped(end)) this.#inString = false
        continue
      }
      const byte = this.#pending[this.#at]!
      if (this.#depth <= 0) this.#outside(byte)
      else if (byte === quote) this.#inString = true
      else if (byte === arrayOpen || byte === objectOpen) this.#depth++
      else if (byte === comma && this.#depth === 1) yield this.#cut()
      else if (byte === arrayClose || byte === objectClose) {
        if (this.#depth-- > 1) continue
        if (byte !== (this.#isObject ? objectClose : arrayClose)) this.#corrupt("a bracket that does not match")
        const last = this.#cut()
        // `[]` has no element, but `[1,]` has an empty second one, which JSON.parse rejects.
        if (last.index > 0 || !last.bytes.every(isSpace)) yield last
        this.#depth = -1
      }
    }
    if (this.#at > longestElement) this.#corrupt(`an element of more than ${longestElement / 2 ** 20} MiB`)
  }

  /** Whether a byte follows an odd number of backslashes. */
  #isEscaped(at: number): boolean {
    let start = at
    while (this.#pending[start - 1] === backslash) start--
    return (at - start) % 2 === 1
  }

  #outside(byte: number): void {
    const isMark = this.#base + this.#at < 3 && [0xef, 0xbb, 0xbf][this.#at] === byte
    if (isSpace(byte) || isMark) return
    if (this.#depth < 0) this.#corrupt("data after its end")
    if (byte !== arrayOpen && byte !== objectOpen) this.#corrupt("no JSON array or object at its start")
    this.#isObject = byte === objectOpen
    this.#depth = 1
    this.#drop()
  }

  #cut(): Span {
    const bytes = this.#pending.subarray(0, this.#at)
    const span = { start: this.#base, bytes, index: this.#count++ }
    this.#drop()
    return span
  }

  /** Drops all bytes up to the current one. */
  #drop(): void {
    this.#pending = this.#pending.subarray(this.#at + 1)
    this.#base += this.#at + 1
    this.#at = -1
  }

  end(): void {
    if (this.#depth === -1) return
    fail(
      "BAD_DATA",
      this.#path,
      `ends too early, after ${this.#base + this.#at} bytes; it is truncated: download it again`,
    )
  }

  parse({ start, bytes, index }: Span): JsonElement {
    const where = `${basename(this.#path)}, element ${index + 1} at byte ${start}`
    try {
      if (!buffer.isUtf8(bytes)) throw new Error("its bytes are not UTF-8")
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
      if (!this.#isObject) return { key: undefined, value: readJson(text), where }
      const members = Object.entries(readJson(`{${text}}`) as object)
      if (members.length !== 1) throw new Error("it is not a member of an object")
      return { key: members[0]![0], value: members[0]![1], where: `${where} (${members[0]![0]})` }
    } catch (cause) {
      const reason = `is corrupt in element ${index + 1} at byte ${start} (${(cause as Error).message}): download it again`
      return fail("BAD_DATA", this.#path, reason, cause)
    }
  }

  #corrupt(what: string): never {
    return fail(
      "BAD_DATA",
      this.#path,
      `is corrupt: it has ${what}, at byte ${this.#base + this.#at}: download it again`,
    )
  }
}

function readBytes(path: string, start: number, length: number): Uint8Array {
  const bytes = Buffer.alloc(length)
  try {
    const file = openSync(path, "r")
    try {
      if (readSync(file, bytes, 0, length, start) === length) return bytes
    } finally {
      closeSync(file)
    }
  } catch (error) {
    fail("IO", path, "cannot be read any more", error)
  }
  return fail("BAD_DATA", path, "has become shorter since it was loaded; load it again")
}

function failure(code: "IO" | "BAD_DATA", path: string, problem: string, cause?: unknown): GigpoError {
  const reason = cause instanceof Error && "syscall" in cause ? ` (${cause.message})` : ""
  return new GigpoError(code, `webshop: ${path} ${problem}${reason}.`, { cause })
}

function fail(...parameters: Parameters<typeof failure>): never {
  throw failure(...parameters)
}
