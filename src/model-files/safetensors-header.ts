/**
 * Parser of safetensors headers. A file consists of the length of the header (8 bytes, little-endian), the header (JSON, padded
 * with spaces), and the data of the tensors. The header gives the dtype, shape and byte range [begin, end) of each tensor.
 * Files are untrusted: all rules of the reference implementation are enforced, and repeated keys are rejected too.
 */
import { GigpoError } from "../util/errors.ts"
import { type JsonValue, parseStrictJson, quote } from "./strict-json.ts"

/** Maximum length of a header, as in the reference implementation. */
export const maxHeaderBytes = 100_000_000

/** Bits of one element by dtype. */
const dtypeBits = new Map([
  ["F4", 4],
  ["F6_E2M3", 6],
  ["F6_E3M2", 6],
  ["BOOL", 8],
  ["U8", 8],
  ["I8", 8],
  ["F8_E5M2", 8],
  ["F8_E4M3", 8],
  ["F8_E8M0", 8],
  ["F8_E4M3FNUZ", 8],
  ["F8_E5M2FNUZ", 8],
  ["I16", 16],
  ["U16", 16],
  ["F16", 16],
  ["BF16", 16],
  ["I32", 32],
  ["U32", 32],
  ["F32", 32],
  ["C64", 64],
  ["F64", 64],
  ["I64", 64],
  ["U64", 64],
])

/** Description of one tensor in a checked header. */
export interface HeaderEntry {
  readonly dtype: string
  readonly shape: readonly number[]
  /** Position of the first byte, counted from the end of the header. */
  readonly begin: number
  /** Position after the last byte. */
  readonly end: number
}

/** Returns the `BAD_MODEL` error for a file that breaks the format. */
export function malformed(file: string, what: string, cause?: unknown): GigpoError {
  const message = `${file} is damaged or was not made by safetensors: ${what}. Download or convert the model again.`
  return new GigpoError("BAD_MODEL", message, { cause })
}

/** Parses the JSON of an untrusted file. Throws `BAD_MODEL` for invalid UTF-8, invalid JSON and repeated keys. */
export function parseUntrusted(bytes: Uint8Array, file: string): JsonValue {
  try {
    return parseStrictJson(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (cause) {
    const reason = cause instanceof SyntaxError ? cause.message : "it is not valid UTF-8 or too large"
    throw malformed(file, `its JSON cannot be read (${reason})`, cause)
  }
}

/** Contents of a safetensors header. */
export interface SafetensorsHeader {
  /** Tensors by name, in the order of their bytes. */
  readonly tensors: ReadonlyMap<string, HeaderEntry>
  readonly metadata: ReadonlyMap<string, string>
}

/**
 * Parses and checks a header. The tensors must cover the bytes after it without gap or overlap.
 *
 * @param dataBytes - number of bytes after the header
 * @throws GigpoError `BAD_MODEL`
 */
export function parseSafetensorsHeader(header: Uint8Array, dataBytes: number, file: string): SafetensorsHeader {
  if (header[0] !== 0x7b) throw malformed(file, 'the header does not start with "{"')
  const root = parseUntrusted(header, file) as Map<string, JsonValue>
  const entries: [string, HeaderEntry][] = []
  let metadata = new Map<string, string>()
  for (const [name, value] of root) {
    if (name === "__metadata__") metadata = parseMetadata(value, file)
    else entries.push([name, parseEntry(name, value, file)])
  }
  entries.sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end)
  let covered = 0
  for (const [name, { begin, end }] of entries) {
    if (begin !== covered) {
      throw malformed(
        file,
        `tensor ${quote(name)} begins at byte ${begin} where ${covered} is expected (gap or overlap)`,
      )
    }
    covered = end
  }
  if (covered !== dataBytes) throw malformed(file, `its tensors take ${covered} bytes, but the file holds ${dataBytes}`)
  return { tensors: new Map(entries), metadata }
}

function parseMetadata(value: JsonValue, file: string): Map<string, string> {
  const valid = value instanceof Map && [...value.values()].every((text) => typeof text === "string")
  if (!valid) throw malformed(file, "__metadata__ must map names to strings")
  return value as Map<string, string>
}

function parseEntry(name: string, value: JsonValue, file: string): HeaderEntry {
  const fail = (what: string): GigpoError => malformed(file, `tensor ${quote(name)} ${what}`)
  if (!(value instanceof Map)) throw fail("is not described by an object")

  const dtype = value.get("dtype")
  const bits = typeof dtype === "string" ? dtypeBits.get(dtype) : undefined
  if (typeof dtype !== "string" || bits === undefined) {
    throw fail(typeof dtype === "string" ? `has the unknown dtype ${quote(dtype)}` : "has no dtype")
  }

  const shape = integers(value.get("shape"))
  if (!shape) throw fail("has a shape that is not a list of integers from 0 to 2^53 - 1")
  // Safe in doubles: a product above 2^53 - 1 rounds to 2^53 or more. An overflow is rejected even if a later factor is 0.
  let length = bits
  for (const dimension of shape) {
    length *= dimension
    if (length > Number.MAX_SAFE_INTEGER) throw fail("has a shape whose product overflows")
  }

  const offsets = integers(value.get("data_offsets"))
  if (offsets?.length !== 2) throw fail("has data_offsets that are not two integers from 0 to 2^53 - 1")
  const [begin, end] = offsets as [number, number]
  if (begin > end) throw fail(`ends at byte ${end}, before it begins at ${begin}`)
  if ((end - begin) * 8 !== length) {
    throw fail(`takes ${end - begin} bytes, but its shape and dtype (${dtype}) need ${length / 8}`)
  }
  return { dtype, shape, begin, end }
}

function integers(value: JsonValue | undefined): number[] | undefined {
  if (!Array.isArray(value)) return undefined
  const valid = value.every((item) => typeof item === "bigint" && item <= Number.MAX_SAFE_INTEGER)
  return valid ? value.map(Number) : undefined
}
