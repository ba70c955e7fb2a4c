import { type MessagePart, messageOf } from "../environment/picture.ts"
import { mediaTypeOf } from "../images/decode.ts"
import type { EncodedImage } from "../images/image.ts"
import { imageLimits } from "../images/limits.ts"
import { GigpoError } from "../util/errors.ts"
import { badField } from "./api-error.ts"
import type { Content } from "./call.ts"
import type { FieldReader } from "./fields.ts"

/** Characters of base64 of the largest image. */
const mostCharacters = Math.ceil(imageLimits.maxBytes / 3) * 4

/** Image of a URL with its data (`data:image/png;base64,…`). Addresses are rejected: a server that fetched them would reach hosts for its clients. */
export function readDataUrl(url: string, field: string): EncodedImage {
  const [prefix] = /^data:[^,]{0,100},/.exec(url) ?? []
  if (prefix === undefined)
    throw badField(field, "must be a data URL such as data:image/png;base64,…: images are not fetched from addresses")
  if (!/;base64,$/i.test(prefix)) throw badField(field, "must be a data URL in base64")
  return readBase64(url.slice(prefix.length), field)
}

/** Image of a base64 text. Its first bytes decide about the type, whatever the client declares. */
export function readBase64(text: string, field: string): EncodedImage {
  if (text.length > mostCharacters)
    throw badField(field, `has an image of more than ${imageLimits.maxBytes} bytes; scale it down`)
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw badField(field, "is not valid base64")
  const bytes = new Uint8Array(Buffer.from(text, "base64"))
  try {
    return { mediaType: mediaTypeOf(bytes), bytes }
  } catch (error) {
    if (GigpoError.is(error)) throw badField(field, `is not supported: ${lowered(error.message)}`)
    throw error
  }
}

const lowered = (message: string) => `${message[0]!.toLowerCase()}${message.slice(1, -1)}`

/** Content of a message of texts and images. */
export function contentOf(parts: readonly MessagePart[]): Content {
  const { content, images } = messageOf("user", parts)
  return { content, ...(images && { images }) }
}

/** Image block of Anthropic's API: `{ type: "image", source: { type: "base64", media_type, data } }`, after its type was read. */
export function readImageBlock(read: FieldReader, source: FieldReader): EncodedImage {
  const type = source.oneOf("type", ["base64", "url", "file"])
  if (type !== "base64") throw badField(source.name("type"), "must be base64: images are not fetched from addresses")
  source.string("media_type")
  const image = readBase64(source.required("data"), source.name("data"))
  source.done()
  read.ignore("cache_control")
  read.done()
  return image
}
