import { PbfWriter } from "pbf"
import { GigpoError } from "../util/errors.ts"
import { atOnce, type Pieces } from "../util/pace.ts"
import { cutOff, otherType, tooMany, WireReader } from "./wire-reader.ts"

// Messages of protocol buffers, declared as tables of their fields, which are used for reading and writing.

/** Field of a message. */
export interface Field<T> {
  readonly tag: number
  /** Returns the value of an absent field; proto3 does not write fields with this value. */
  readonly empty: () => T
  readonly isEmpty: (value: T) => boolean
  /** Reads one occurrence. A repeated field appends it to the earlier ones. */
  readonly read: (reader: WireReader, before: T) => T
  readonly write: (writer: PbfWriter, value: T) => void
}

type Fields<T> = { readonly [Name in keyof T]: Field<T[Name]> }

/** Contents of a message. */
export type Held<M> = M extends Message<infer T> ? Readonly<T> : never

/** Message type, defined by its fields. */
export class Message<T extends object> {
  readonly #fields: [keyof T, Field<T[keyof T]>][]
  readonly #byTag: Map<number, [keyof T, Field<T[keyof T]>]>

  constructor(fields: Fields<T>) {
    this.#fields = Object.entries(fields) as [keyof T, Field<T[keyof T]>][]
    this.#byTag = new Map(this.#fields.map((entry) => [entry[1].tag, entry]))
  }

  /** Decodes a message. Throws `BAD_ARGUMENT` for an invalid message, and for one above the limits of its fields. */
  decode(buffer: Uint8Array): Readonly<T> {
    return atOnce(this.read(buffer))
  }

  /** Decodes a message, one top-level field per piece of work. Throws as `decode`. */
  *read(buffer: Uint8Array): Pieces<Readonly<T>> {
    const reader = new WireReader(buffer)
    const message = this.blank()
    try {
      for (let tag = reader.nextField(); tag !== 0; tag = reader.nextField()) {
        reader.beginPart()
        this.#take(reader, tag, message)
        yield
      }
    } catch (cause) {
      if (GigpoError.is(cause)) throw cause
      throw new GigpoError("BAD_ARGUMENT", "The data is not a valid message of the API.", { cause })
    }
    if (reader.pos !== reader.length) throw cutOff()
    return message
  }

  encode(message: Readonly<T>): Uint8Array {
    const writer = new PbfWriter()
    this.writeTo(writer, message)
    return writer.finish()
  }

  readFrom(reader: WireReader, end: number): T {
    const message = this.blank()
    for (let tag = reader.nextField(end); tag !== 0; tag = reader.nextField(end)) {
      reader.countField()
      this.#take(reader, tag, message)
    }
    if (reader.pos !== end) throw cutOff()
    return message
  }

  #take(reader: WireReader, tag: number, message: T): void {
    const [name, field] = this.#byTag.get(tag) ?? []
    if (name !== undefined && field) message[name] = field.read(reader, message[name])
  }

  /** Returns an empty message. */
  blank(): T {
    return Object.fromEntries(this.#fields.map(([name, { empty }]) => [name, empty()])) as T
  }

  writeTo(writer: PbfWriter, message: Readonly<T>): void {
    for (const [name, { isEmpty, write }] of this.#fields) if (!isEmpty(message[name])) write(writer, message[name])
  }
}

/** Encoding of a kind of values. */
interface Kind<T> {
  /** Wire type: 0 is a varint, 1 is eight bytes, 2 has a length prefix. */
  readonly wire: 0 | 1 | 2
  readonly empty: () => T
  readonly isEmpty: (value: T) => boolean
  readonly take: (reader: WireReader) => T
  readonly put: (writer: PbfWriter, tag: number, value: T) => void
}

function take<T>(kind: Kind<T>, reader: WireReader): T {
  if (reader.type !== kind.wire) throw otherType()
  return kind.take(reader)
}

const texts: Kind<string> = {
  wire: 2,
  empty: () => "",
  isEmpty: (value) => value === "",
  take: (reader) => reader.readString(),
  put: (writer, tag, value) => writer.writeStringField(tag, value),
}
const buffers: Kind<Uint8Array> = {
  wire: 2,
  empty: () => new Uint8Array(),
  isEmpty: (value) => value.length === 0,
  take: (reader) => reader.readBytes(),
  put: (writer, tag, value) => writer.writeBytesField(tag, value),
}
const integers: Kind<number> = {
  wire: 0,
  empty: () => 0,
  isEmpty: (value) => value === 0,
  take: (reader) => reader.readVarint(true),
  put: (writer, tag, value) => writer.writeVarintField(tag, value),
}
const doubles: Kind<number> = {
  wire: 1,
  empty: () => 0,
  isEmpty: (value) => value === 0,
  take: (reader) => reader.readDouble(),
  put: (writer, tag, value) => writer.writeDoubleField(tag, value),
}
const switches: Kind<boolean> = {
  wire: 0,
  empty: () => false,
  isEmpty: (value) => !value,
  take: (reader) => reader.readBoolean(),
  put: (writer, tag, value) => writer.writeBooleanField(tag, value),
}
const messages = <T extends object>(message: Message<T>): Kind<T> => ({
  wire: 2,
  empty: () => message.blank(),
  isEmpty: () => false,
  take: (reader) => message.readFrom(reader, reader.readEnd()),
  put: (writer, tag, value) => writer.writeMessage(tag, (inner, into) => message.writeTo(into, inner), value),
})

/** Field whose absence means its default. */
const plain =
  <T>(kind: Kind<T>) =>
  (tag: number): Field<T> => ({
    tag,
    empty: kind.empty,
    isEmpty: kind.isEmpty,
    read: (reader) => take(kind, reader),
    write: (writer, value) => kind.put(writer, tag, value),
  })

/** Field whose absence means undefined. */
const explicit =
  <T>(kind: Kind<T>) =>
  (tag: number): Field<T | undefined> => ({
    tag,
    empty: () => undefined,
    isEmpty: (value) => value === undefined,
    read: (reader) => take(kind, reader),
    write: (writer, value) => kind.put(writer, tag, value as T),
  })

export const text = plain(texts)
export const bytes = plain(buffers)
/** Field of type int32, int64 or enumeration; exact up to 2^53. */
export const integer = plain(integers)
export const flag = plain(switches)
export const textIfThere = explicit(texts)
export const bytesIfThere = explicit(buffers)
export const doubleIfThere = explicit(doubles)

/** Optional message. */
export const messageIfThere = <T extends object>(tag: number, message: Message<T>) => explicit(messages(message))(tag)

/** Repeated messages with a maximum number. */
export function many<T extends object>(tag: number, message: Message<T>, most: number): Field<readonly T[]> {
  const kind = messages(message)
  return {
    tag,
    empty: () => [],
    isEmpty: (values) => values.length === 0,
    read: (reader, before) => {
      if (before.length >= most) throw tooMany(`${most} elements in field ${tag}`)
      ;(before as T[]).push(take(kind, reader))
      return before
    },
    write: (writer, values) => {
      for (const value of values) kind.put(writer, tag, value)
    },
  }
}

/** Repeated integers, packed, with a maximum number. */
export const manyIntegers = (tag: number, most: number): Field<readonly number[]> => ({
  tag,
  empty: () => [],
  isEmpty: (values) => values.length === 0,
  read: (reader, before) => reader.readIntegers(before as number[], most),
  write: (writer, values) => writer.writePackedVarint(tag, values as number[]),
})

/** map<string, …> with a maximum size: repeated entries {1 key, 2 value}. Both are always written, even with default values. */
function mapOf<T>(tag: number, kind: Kind<T>, most: number): Field<ReadonlyMap<string, T>> {
  const written = { isEmpty: () => false }
  const key = { ...text(1), ...written }
  const entry = messages(new Message<{ key: string; value: T }>({ key, value: { ...plain(kind)(2), ...written } }))
  return {
    tag,
    empty: () => new Map(),
    isEmpty: (values) => values.size === 0,
    read: (reader, before) => {
      const { key, value } = take(entry, reader)
      if (before.size >= most || before.has(key)) throw tooMany(`${most} entries in field ${tag}, with different keys`)
      return (before as Map<string, T>).set(key, value)
    },
    write: (writer, values) => {
      for (const [key, value] of values) entry.put(writer, tag, { key, value })
    },
  }
}

export const mapOfDoubles = (tag: number, most: number) => mapOf(tag, doubles, most)
export const mapOfMessages = <T extends object>(tag: number, message: Message<T>, most: number) =>
  mapOf(tag, messages(message), most)
