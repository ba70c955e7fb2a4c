import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { deflateSync } from "node:zlib"
import { encode } from "fast-png"
import { expect, it } from "vitest"
import { decodeImage, mediaTypeOf } from "../../src/images/decode.ts"
import { encodePng } from "../../src/images/png.ts"
import { pattern } from "./pattern.ts"

const { decoded, refused } = JSON.parse(readFileSync("test/fixtures/images/files.json", "utf8")) as {
  decoded: { name: string; file: string; width: number; height: number; pixels: string; first: number[][] }[]
  refused: { name: string; file: string }[]
}
const bytesOf = (base64: string) => new Uint8Array(Buffer.from(base64, "base64"))
const fileOf = (name: string) => bytesOf(decoded.find((one) => one.name === name)!.file)

it.each(decoded)("$name: the pixels are Pillow's on white", async ({ file, width, height, pixels, first }) => {
  const raster = await decodeImage(bytesOf(file))
  expect([raster.width, raster.height]).toEqual([width, height])
  expect([0, 1, 2, 3].map((pixel) => [...raster.data.subarray(3 * pixel, 3 * pixel + 3)])).toEqual(first)
  expect(createHash("sha256").update(raster.data).digest("hex")).toBe(pixels)
})

it.each(refused)("rejects $name and says what to do", async ({ name, file }) => {
  const fixes: Readonly<Record<string, RegExp>> = { CMYK: /convert it to RGB/, animated: /save one frame/ }
  const error = await decodeImage(bytesOf(file)).catch((error) => error)
  expect(error).toMatchObject({
    code: "BAD_DATA",
    message: expect.stringMatching(fixes[name] ?? /convert it to PNG or JPEG/),
  })
  if (!fixes[name]) expect(error.message).toContain(name)
})

it("reads what it writes, interlaced files too", async () => {
  const raster = pattern(37, 23)
  const { bytes, mediaType } = await encodePng(raster)
  expect(mediaTypeOf(bytes)).toBe(mediaType)
  expect(await decodeImage(bytes)).toEqual(raster)
  const interlaced = encode({ ...raster, channels: 3, depth: 8 }, { interlace: "Adam7" })
  expect(await decodeImage(interlaced)).toEqual(raster)
})

it("reduces 16 bits per channel to the high byte, gray too, where Pillow cuts values above 255", async () => {
  const values = [0, 255, 256, 0x1234, 0xabcd, 0xffff]
  for (const channels of [1, 3]) {
    const data = Uint16Array.from(values.flatMap((value) => Array(channels).fill(value)))
    const raster = await decodeImage(encode({ width: values.length, height: 1, data, channels, depth: 16 }))
    expect([...raster.data]).toEqual(values.flatMap((value) => Array(3).fill(value >> 8)))
  }
})

const cut = (bytes: Uint8Array, share: number) => bytes.subarray(0, Math.floor(bytes.length * share))

it.each(["png: rgb", "png: palette of 4 bits", "jpeg: 4:2:0", "jpeg: 4:4:4, progressive"])(
  "rejects %s when it is cut off anywhere",
  async (name) => {
    const whole = fileOf(name)
    for (const share of [0, 0.001, 0.02, 0.3, 0.6, 0.9, 0.995])
      await expect(decodeImage(cut(whole, share))).rejects.toMatchObject({ code: "BAD_DATA" })
  },
)

/** PNG file with a header and pixel data of these parts. */
function png(width: number, height: number, data: Uint8Array, colour = 2, depth = 8, interlace = 0): Uint8Array {
  const chunk = (type: string, content: Uint8Array) => {
    const bytes = Buffer.concat([Buffer.alloc(4), Buffer.from(type, "latin1"), content, Buffer.alloc(4)])
    bytes.writeUInt32BE(content.length, 0)
    return bytes
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([depth, colour, 0, 0, interlace], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", Buffer.alloc(0))])
}

it("rejects sizes and data beyond the limits before pixels are reserved", async () => {
  const message = (bytes: Uint8Array) => decodeImage(bytes).then(String, (error) => `${error.code} ${error.message}`)
  const none = new Uint8Array()
  expect(await message(png(100_000, 100_000, none))).toMatch(
    /^BAD_DATA .*more than the limit of 16777216; scale it down/,
  )
  expect(await message(png(0, 5, none))).toMatch(/0 × 5 pixels/)
  expect(await message(png(5, 5, deflateSync(Buffer.alloc(2 ** 26))))).toMatch(/more data than its size allows/)
  expect(await message(png(5, 5, deflateSync(Buffer.alloc(7))))).toMatch(/too little pixel data/)
  expect(await message(png(5, 5, none, 7))).toMatch(/colour type 7/)
  expect(await message(png(5, 5, none, 0, 4, 1))).toMatch(/without interlacing/)
  expect(await message(new Uint8Array(21 * 2 ** 20))).toMatch(/more than the limit of 20971520/)
  const large = Buffer.from(fileOf("jpeg: 4:4:4"))
  large.writeUInt32BE(0xffff_ffff, large.indexOf(Buffer.from([0xff, 0xc0])) + 5)
  expect(await message(large)).toMatch(/65535 × 65535 pixels/)
  expect(await message(new TextEncoder().encode("plain text"))).toMatch(/neither PNG nor JPEG/)
})

it("rejects a JPEG file with more scans than any encoder writes", async () => {
  const whole = fileOf("jpeg: 4:4:4, progressive")
  const scan = whole.indexOf(0xda)
  const first = whole.subarray(scan - 1, whole.indexOf(0xff, scan))
  const many = Buffer.concat([whole.subarray(0, scan - 1), ...Array(101).fill(first), whole.subarray(scan - 1)])
  await expect(decodeImage(many)).rejects.toMatchObject({ message: expect.stringMatching(/more than 100 scans/) })
})

it("decodes a sound file after a corrupt one", async () => {
  const name = "jpeg: 4:2:0"
  const corrupt = fileOf(name)
  corrupt.fill(0xff, 200, 260)
  await expect(decodeImage(corrupt)).rejects.toMatchObject({ code: "BAD_DATA" })
  const { data } = await decodeImage(fileOf(name))
  expect(createHash("sha256").update(data).digest("hex")).toBe(decoded.find((one) => one.name === name)!.pixels)
})
