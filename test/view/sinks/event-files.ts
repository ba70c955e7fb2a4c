import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"

// A reader of event files that shares nothing with the writer: written from the text of the formats (TFRecord, protobuf's encoding,
// event.proto and summary.proto), with a checksum computed bit by bit.

export interface ReadEvent {
  time?: number
  step: number
  version?: string
  /** SessionLog.status. */
  session?: number
  values: Record<string, number>
}

/** The whole records of a file; what comes after the last of them is no error, a wrong checksum is one. */
export function parseEvents(data: Buffer): ReadEvent[] {
  const events: ReadEvent[] = []
  let at = 0
  while (at + 12 <= data.length) {
    const size = Number(data.readBigUInt64LE(at))
    verify(data.subarray(at, at + 8), data.readUInt32LE(at + 8))
    if (at + 12 + size + 4 > data.length) break
    const body = data.subarray(at + 12, at + 12 + size)
    verify(body, data.readUInt32LE(at + 12 + size))
    events.push(parseEvent(body))
    at += 12 + size + 4
  }
  return events
}

/** What a reader of the whole folder knows at the end: files by name, a session's start makes it forget. */
export async function readEventFolder(folder: string): Promise<ReadEvent[]> {
  let known: ReadEvent[] = []
  for (const name of (await readdir(folder)).filter((one) => one.includes("tfevents")).sort())
    for (const event of parseEvents(await readFile(join(folder, name)))) {
      if (event.session === 1) known = known.filter(({ step }) => step < event.step)
      else if (event.version === undefined) known.push(event)
    }
  return known
}

function parseEvent(body: Buffer): ReadEvent {
  const event: ReadEvent = { step: 0, values: {} }
  for (const [field, value] of fields(body)) {
    if (field === 1) event.time = (value as Buffer).readDoubleLE()
    if (field === 2) event.step = Number(value)
    if (field === 3) event.version = String(value)
    if (field === 5) for (const [, one] of fields(value as Buffer)) addValue(event, one as Buffer)
    if (field === 7) event.session = Number(fields(value as Buffer).find(([inner]) => inner === 1)?.[1])
  }
  return event
}

function addValue({ values }: ReadEvent, body: Buffer): void {
  const of = new Map(fields(body))
  const tag = String(of.get(1))
  if (tag in values) throw new Error(`${tag} stands twice`)
  values[tag] = (of.get(2) as Buffer).readFloatLE()
}

function fields(body: Buffer): [number, Buffer | bigint][] {
  const found: [number, Buffer | bigint][] = []
  let at = 0
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = body.readUInt8(at++)
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  const take = (size: number) => {
    if (at + size > body.length) throw new Error("a field is longer than its message")
    at += size
    return body.subarray(at - size, at)
  }
  while (at < body.length) {
    const key = Number(varint())
    const kind = key & 7
    if (kind === 0) found.push([key >> 3, varint()])
    else if (kind === 1) found.push([key >> 3, take(8)])
    else if (kind === 2) found.push([key >> 3, take(Number(varint()))])
    else if (kind === 5) found.push([key >> 3, take(4)])
    else throw new Error(`no such wire type: ${kind}`)
  }
  return found
}

function verify(data: Buffer, masked: number): void {
  let rest = 0xffffffffn
  for (const byte of data) {
    rest ^= BigInt(byte)
    for (let bit = 0; bit < 8; bit++) rest = rest & 1n ? (rest >> 1n) ^ 0x82f63b78n : rest >> 1n
  }
  const crc = rest ^ 0xffffffffn
  const rotated = ((crc >> 15n) | (crc << 17n)) & 0xffffffffn
  if (BigInt(masked) !== ((rotated + 0xa282ead8n) & 0xffffffffn)) throw new Error("wrong checksum")
}
