import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { decompress, TooMuch } from "../../src/tinker/zstd/decompress.ts"
import { atOnce } from "../../src/util/pace.ts"
import { zstdData } from "./zstd-data.ts"
import { type Block, bomb, endlessCopies, frame } from "./zstd-frames.ts"

const folder = new URL("../fixtures/zstd/", import.meta.url)
const fixtures = readdirSync(folder).map((name) => ({
  name,
  bytes: new Uint8Array(readFileSync(new URL(name, folder))),
}))
const most = 2 ** 24
const whole = (bytes: Uint8Array, limit = most) => atOnce(decompress(bytes, limit))
const bad = expect.objectContaining({ code: "BAD_ARGUMENT" })
const same = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0

it.each(fixtures)("reads $name as the reference wrote it", ({ name, bytes }) => {
  expect(same(whole(bytes), zstdData[name.replace(/-.*/, "")]!())).toBe(true)
})

it("reads frames one after another, and passes over those without data", () => {
  const words = fixtures.find(({ name }) => name === "words-1.zst")!.bytes
  const skipped = Uint8Array.of(0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9)
  const once = zstdData.words!()
  expect(same(whole(Buffer.concat([skipped, words, skipped, words])), Buffer.concat([once, once]))).toBe(true)
  expect(whole(new Uint8Array())).toHaveLength(0)
})

describe("bytes from anybody", () => {
  const rle = (size: number): Block => ({ kind: "rle", bytes: [7], size })

  it("give out no more than was allowed, in pieces of one block", () => {
    const pieces = decompress(bomb(1), 2 ** 20)
    let count = 0
    while (!pieces.next().done) count++
    expect(count).toBeGreaterThanOrEqual(8)
    expect(same(whole(bomb(1)), Buffer.from("1a00".repeat(2 ** 19), "hex"))).toBe(true)
    expect(() => whole(bomb(64))).toThrow(TooMuch)
    expect(() => whole(bomb(1), 2 ** 20 - 1)).toThrow(TooMuch)
    expect(() => whole(frame(Array(200).fill(rle(131_072))))).toThrow(TooMuch)
    expect(() => whole(frame(Array(20_000).fill(rle(1))))).toThrow(/blocks/)
    const empty = frame([{ kind: "raw", bytes: [] }])
    expect(() => whole(Buffer.concat(Array(10_000).fill(empty)))).toThrow(/blocks/)
  })

  it("are rejected where a block is larger than blocks are", () => {
    expect(() => whole(frame([rle(131_073)]))).toThrow(bad)
    expect(() => whole(frame([rle(2 ** 21 - 1)]))).toThrow(bad)
    expect(() => whole(endlessCopies)).toThrow(bad)
  })

  it("allocate nothing for the window and the size that a frame declares", () => {
    const windows = [0x50, 0xf8, 0xff].map((window) => frame([rle(3)], [0x28, 0xb5, 0x2f, 0xfd, 0x00, window]))
    for (const bytes of windows) expect(whole(bytes)).toEqual(Uint8Array.of(7, 7, 7))
    const huge = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, ...Array(8).fill(0xff)]
    expect(() => whole(frame([rle(3)], huge))).toThrow(bad)
    expect(whole(frame([rle(3)], [0x28, 0xb5, 0x2f, 0xfd, 0x20, 3]))).toHaveLength(3)
  })

  it("are rejected where they are something else", () => {
    const bytes = [
      [1, 2, 3],
      [0x28, 0xb5, 0x2f, 0xfd],
      [0x28, 0xb5, 0x2f, 0xfd, 0x08, 0x50, 1, 0, 0], // a reserved bit
      [0x28, 0xb5, 0x2f, 0xfd, 0x01, 0x50, 9, 1, 0, 0], // a dictionary
      [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50, 7, 0, 0], // a block of the reserved kind
      [0x50, 0x2a, 0x4d, 0x18, 0xff, 0xff, 0xff, 0xff],
    ]
    for (const one of bytes) expect(() => whole(Uint8Array.from(one)), `${one}`).toThrow(bad)
  })

  it("that were cut or changed are rejected or are other data, and end", () => {
    let state = 1
    const below = (end: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((state / 2 ** 32) * end)
    }
    let refused = 0
    for (let round = 0; round < 1500; round++) {
      const { bytes } = fixtures[below(fixtures.length)]!
      const changed = bytes.slice(0, round % 5 === 0 ? below(bytes.length) : bytes.length)
      for (let i = 0; i <= below(4) && changed.length > 0; i++)
        changed[below(Math.min(changed.length, 400))] = below(256)
      try {
        expect(whole(changed).length).toBeLessThanOrEqual(most)
      } catch (error) {
        expect(error).toEqual(bad)
        refused++
      }
    }
    expect(refused).toBeGreaterThan(500)
  })
})
