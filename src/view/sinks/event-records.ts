import { crc32c } from "./crc32c.ts"

// TensorBoard's format: TFRecord records, each with a protobuf message `Event` (tensorflow/core/util/event.proto). Only a few fields are
// written. A field begins with its number and wire type.

const varint = 0
const bits64 = 1
const bytes = 2
const bits32 = 5

/** First record of a file, with the first version for which TensorBoard supports session starts. */
export function fileVersion(seconds: number): Buffer {
  return event(seconds, 0, field(3, bytes, sized(Buffer.from("brain.Event:2"))))
}

/** Record of a session start: TensorBoard discards data of this step and later ones. */
export function sessionStart(seconds: number, step: number): Buffer {
  const started = field(1, varint, Buffer.of(1))
  return event(seconds, step, field(7, bytes, sized(started)))
}

/** Record of scalars. `seconds` since 1970. */
export function scalars(seconds: number, step: number, values: Readonly<Record<string, number>>): Buffer {
  const summary = Object.entries(values).map(([tag, value]) => {
    const single = Buffer.alloc(4)
    single.writeFloatLE(value)
    const of = Buffer.concat([field(1, bytes, sized(Buffer.from(tag))), field(2, bits32, single)])
    return field(1, bytes, sized(of))
  })
  return event(seconds, step, field(5, bytes, sized(Buffer.concat(summary))))
}

function event(seconds: number, step: number, what: Buffer): Buffer {
  const time = Buffer.alloc(8)
  time.writeDoubleLE(seconds)
  return record(Buffer.concat([field(1, bits64, time), field(2, varint, number(step)), what]))
}

/** TFRecord: u64 length, its checksum, the data, its checksum; little-endian. */
function record(data: Buffer): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(data.length))
  return Buffer.concat([length, checksum(length), data, checksum(data)])
}

/** Masked checksum, because a plain checksum of data that contain checksums is weak. */
function checksum(data: Buffer): Buffer {
  const crc = crc32c(data)
  const masked = Buffer.alloc(4)
  masked.writeUInt32LE((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0)
  return masked
}

function field(place: number, coded: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.of((place << 3) | coded), value])
}

function sized(value: Buffer): Buffer {
  return Buffer.concat([number(value.length), value])
}

/** Varint: seven bits per byte, the lowest first. */
function number(value: number): Buffer {
  const coded: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) coded.push((rest % 0x80) | 0x80)
  return Buffer.of(...coded, rest)
}
