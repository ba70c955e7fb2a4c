import { PbfReader } from "pbf"
import { GigpoError } from "../util/errors.ts"

/** Fields of a whole message, with those of later versions that are passed over. */
const mostFields = 2 ** 20
/** Fields within one of a message's outermost fields: read without a pause, in some milliseconds. */
const mostFieldsOfPart = 2 ** 15
/** Bytes of a text: texts are names. */
const longestText = 4096

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Reader of protocol buffers from anybody: counts what it reads, and refuses too much before it is allocated. */
export class WireReader extends PbfReader {
  #left = mostFields
  #leftOfPart = mostFieldsOfPart

  /** Begins an outermost field of the message. */
  beginPart(): void {
    this.#leftOfPart = mostFieldsOfPart
    this.countField()
  }

  countField(): void {
    if (--this.#left < 0 || --this.#leftOfPart < 0) throw tooMany(`${mostFields} fields, ${mostFieldsOfPart} in a part`)
  }

  /** The end of a value whose length comes next. */
  readEnd(): number {
    const end = this.readVarint() + this.pos
    if (end > this.length) throw cutOff()
    return end
  }

  override readBytes(): Uint8Array {
    const end = this.readEnd()
    const found = this.buf.subarray(this.pos, end)
    this.pos = end
    return found
  }

  override readString(): string {
    const bytes = this.readBytes()
    if (bytes.length > longestText) throw tooMany(`${longestText} bytes of a text`)
    return utf8.decode(bytes)
  }

  /** @throws GigpoError `BAD_ARGUMENT` where there are more than `most` together with those of before. */
  readIntegers(before: number[], most: number): number[] {
    if (this.type !== 0 && this.type !== 2) throw otherType()
    const end = this.type === 2 ? this.readEnd() : this.pos + 1
    while (this.pos < end) {
      if (before.length >= most) throw tooMany(`${most} integers in a list`)
      before.push(this.readVarint(true))
    }
    return before
  }

  override skip(type: number): void {
    if ((type & 7) === 0)
      this.readVarint() // at most ten bytes
    else if ((type & 7) === 2) this.pos = this.readEnd()
    else super.skip(type)
  }
}

export const cutOff = () => new GigpoError("BAD_ARGUMENT", "A message of the protocol is cut off.")
export const otherType = () => new GigpoError("BAD_ARGUMENT", "A field of the message has another type.")
export const tooMany = (what: string) =>
  new GigpoError("BAD_ARGUMENT", `A message may hold ${what}; send less at once.`)
