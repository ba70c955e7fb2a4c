import { describe, expect, it } from "vitest"
import { bodyText, readBytes } from "../../src/http/body.ts"
import { atOnce } from "../../src/util/pace.ts"

const request = (body: ReadableStream<Uint8Array>) =>
  new Request("http://127.0.0.1/", { method: "POST", body, duplex: "half" } as RequestInit)

describe("a large body", () => {
  it("is put together in turns of the event loop", async () => {
    const [pieces, length] = [256, 65_536]
    let [given, turns, ended] = [0, 0, false]
    const count = () => {
      turns++
      if (ended) setImmediate(count)
    }
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          controller.enqueue(new Uint8Array(length).fill(given))
          if (++given < pieces) return
          controller.close()
          ended = true
          setImmediate(count)
        },
      },
      { highWaterMark: 0 },
    )
    const bytes = await readBytes(request(body), 2 ** 25)
    ended = false
    expect(bytes.length).toBe(pieces * length)
    for (let piece = 0; piece < pieces; piece++) expect(bytes[piece * length + 1]).toBe(piece)
    expect(turns).toBeGreaterThan(3)
  })

  it("is decoded in pieces, whatever character is at their ends", () => {
    // Characters of 1 to 4 bytes, shifted by one byte each time: each has every place at the end of a piece.
    for (let shift = 0; shift < 12; shift++) {
      const text = `${"x".repeat(shift)}${"aé€\u{1f600}\ufeff".repeat(40_000)}`
      const pieces = bodyText(Buffer.from(text))
      let count = 0
      for (;;) {
        const { done, value } = pieces.next()
        count++
        if (!done) continue
        expect(value).toBe(text)
        break
      }
      expect(count).toBeGreaterThan(3)
    }
  })
})

describe("the text of a body", () => {
  const decoded = (bytes: Uint8Array) => atOnce(bodyText(bytes))
  const long = Buffer.alloc(2 ** 17, 0x61)

  it("has no byte order mark, and keeps the same character elsewhere", () => {
    expect(decoded(Buffer.from("\ufeff{}"))).toBe("{}")
    expect(decoded(Buffer.concat([long, Buffer.from("\ufeff{}")]))).toBe(`${long}\ufeff{}`)
    expect(decoded(new Uint8Array())).toBe("")
  })

  it.each<[string, readonly number[]]>([
    ["a byte that begins no character", [0xff]],
    ["a byte that only continues one", [0x80]],
    ["a character without its end", [0xe2, 0x82]],
    ["a character that is longer than needed", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
  ])("is rejected with %s, wherever it is", (_, wrong) => {
    const bytes = Buffer.from(wrong)
    for (const before of [0, 1, 2 ** 17 - 1, 2 ** 17, 2 ** 17 + 1])
      for (const after of [0, 5])
        expect(() => decoded(Buffer.concat([Buffer.alloc(before, 0x61), bytes, Buffer.alloc(after, 0x61)]))).toThrow(
          expect.objectContaining({ status: 400, message: "The request is not UTF-8." }),
        )
  })
})
