import { PbfReader } from "pbf"
import { GigpoError } from "../util/errors.ts"

/** Maximum number of fields of a message, including unknown ones. */
const mostFields = 2 ** 20
/** Maximum number of fields within one top-level field, which is read without a pause, in some milliseconds. */
const mostFieldsOfPart = 2 ** 15
/** Maximum bytes of a string; strings are names. */
const longestText = 4096

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Reader of untrusted protocol buffers, which checks limits before anything is allocated. */
export class WireReader extends PbfReader {
  #left = mostFields
  #leftOfPart = mostFieldsOfPart

  /** Starts a top-level field of the message. */
  beginPart(): void {
    this.#leftOfPart = mostFieldsOfPart
    this.countField()
  }

  /** Counts a field. Throws `BAD_ARGUMENT` above the limits. */
  countField(): void {
    if (--this.#left < 0 || --this.#leftOfPart < 0) throw tooMany(`${mostFields} fields, ${mostFieldsOfPart} in a part`)
  }

  /** Reads a length and returns the end position of its value. */
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
    if (bytes.length > longestText) throw tooMany(`${longestText} bytes in a string`)
    return utf8.decode(bytes)
  }

  /** Appends integers to a list. Throws `BAD_ARGUMENT` for more than `most` in total. */
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

/** Returns the error for an incomplete message. */
export const cutOff = () => new GigpoError("BAD_ARGUMENT", "The message is incomplete.")
/** Returns the error for a field of a wrong type. */
export const otherType = () => new GigpoError("BAD_ARGUMENT", "A field of the message has the wrong type.")
/** Returns the error for a message above a limit. */
export const tooMany = (what: string) =>
  new GigpoError("BAD_ARGUMENT", `A message may have at most ${what}; send smaller requests.`)
