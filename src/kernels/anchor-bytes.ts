/** States as bytes: state i is bytes[offsets[i] … offsets[i + 1]). */
export interface AnchorBytes {
  readonly bytes: Uint8Array
  /** [states + 1], never decreasing. */
  readonly offsets: Float64Array
}

/** Half a surrogate pair, alone: UTF-8 would make one character of them all. */
const loneSurrogate = /\p{Surrogate}/u

/** Kept from call to call, as fresh memory costs more than what is written to it; no more than this, in bytes. */
const mostKept = 1 << 24
let kept = Buffer.alloc(0)

/**
 * All texts in UTF-8, or all in UTF-16 where one of them does not survive UTF-8. One call for each text is what is fastest:
 * joining them first costs more than the calls that it saves.
 *
 * @param units - UTF-16 units of all texts together.
 * @param bytes - room for them. Default: what is kept from call to call, and holds until the next.
 */
export function toBytes(texts: readonly string[], units: number, bytes = roomFor(units)): AnchorBytes {
  const offsets = new Float64Array(texts.length + 1)
  let end = 0
  for (let i = 0; i < texts.length; i++) {
    const text = texts[i]!
    const written = bytes.write(text, end)
    if (written !== text.length && loneSurrogate.test(text)) return toUtf16(texts, bytes)
    end += written
    offsets[i + 1] = end
  }
  return { bytes, offsets }
}

/** No UTF-16 unit takes more than three bytes of UTF-8. What is not written to is never touched. */
export function ownRoom(units: number): Buffer<ArrayBuffer> {
  return Buffer.allocUnsafeSlow(3 * units)
}

function roomFor(units: number): Buffer {
  if (3 * units <= kept.length) return kept
  const room = ownRoom(units)
  if (room.length <= mostKept) kept = room
  return room
}

/** Two bytes a unit, in which every text is itself. */
function toUtf16(texts: readonly string[], bytes: Buffer): AnchorBytes {
  const offsets = new Float64Array(texts.length + 1)
  for (let i = 0; i < texts.length; i++) offsets[i + 1] = offsets[i]! + bytes.write(texts[i]!, offsets[i]!, "utf16le")
  return { bytes, offsets }
}
