import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { type ReadElementsOptions, readElements } from "../../../src/environment/webshop/json-elements.ts"
import { Random } from "../../../src/util/random.ts"

const folder = mkdtempSync(join(tmpdir(), "gigpo-webshop-"))
afterAll(() => rmSync(folder, { recursive: true }))

function write(content: string | Uint8Array): string {
  const path = join(folder, "some.json")
  writeFileSync(path, content)
  return path
}

/** All elements as they pass by, and as they are read again. */
async function read(content: string | Uint8Array, options: ReadElementsOptions = {}) {
  const seen: [string | undefined, unknown][] = []
  const kept = await readElements(
    write(content),
    ({ key, value }) => {
      seen.push([key, value])
      return true
    },
    options,
  )
  const again = seen.map((_, i) => kept.get(i)).map(({ key, value }) => [key, value])
  return { seen, again }
}

const streamed = { inMemory: 0 }

describe("readElements", () => {
  it.each([
    ["[]", []],
    [" \n[ ] \n", []],
    ["{}", []],
    ["[1]", [[undefined, 1]]],
    [
      '\ufeff[ {"a": [1, {"b": "]}"}]} , "x,y\\"]" , null ]',
      [
        [undefined, { a: [1, { b: "]}" }] }],
        [undefined, 'x,y"]'],
        [undefined, null],
      ],
    ],
    [
      '{"a": {"b": 1}, "__proto__": [2], "é\\\\": "\\\\"}',
      [
        ["a", { b: 1 }],
        ["__proto__", [2]],
        ["é\\", "\\"],
      ],
    ],
  ])("reads %j", async (content, elements) => {
    expect(await read(content)).toEqual({ seen: elements, again: elements })
    expect(await read(content, { ...streamed, chunkBytes: 1 })).toEqual({ seen: elements, again: elements })
  })

  it("does not depend on the ends of chunks", async () => {
    const random = new Random(7)
    const pieces = ["{", "}", "[", "]", ",", ":", '"', "\\", "\n", "é", "☞", "😀", "a", " ", "\u2028"]
    const text = () => Array.from({ length: random.below(12) }, () => pieces[random.below(pieces.length)]).join("")
    const value = (depth: number): unknown =>
      depth === 0 || random.below(3) === 0
        ? [text(), random.below(1000) / 8, null, true][random.below(4)]
        : random.below(2) === 0
          ? Array.from({ length: random.below(4) }, () => value(depth - 1))
          : Object.fromEntries(Array.from({ length: random.below(4) }, () => [text(), value(depth - 1)]))
    for (let round = 0; round < 150; round++) {
      const list = Array.from({ length: random.below(6) }, () => value(3))
      const object = Object.fromEntries(list.map((item) => [text(), item]))
      const indent = random.below(3)
      for (const whole of [list, object]) {
        const expected = Array.isArray(whole) ? whole.map((item) => [undefined, item]) : Object.entries(whole)
        const options = { inMemory: random.below(2) * 1e6, chunkBytes: 1 + random.below(40) }
        const found = await read(JSON.stringify(whole, undefined, indent), options)
        expect(found).toEqual({ seen: expected, again: expected })
      }
    }
  })

  it("keeps only selected elements", async () => {
    for (const options of [{}, streamed]) {
      const kept = await readElements(write("[10, 11, 12, 13]"), ({ value }) => (value as number) % 2 === 1, options)
      expect([kept.get(0).value, kept.get(1).value]).toEqual([11, 13])
    }
  })

  it.each([
    ["", "ends too early, after 0 bytes"],
    ["  ", "ends too early"],
    ["hello", "no JSON array or object at its start, at byte 0"],
    ['"text"', "no JSON array or object at its start"],
    ['[{"a": 1}, {"b"', "ends too early, after 15 bytes"],
    ['[{"a": "x', "ends too early"],
    ["[1, 2", "ends too early"],
    ["[1, 2}", "a bracket that does not match, at byte 5"],
    ['{"a": 1]', "a bracket that does not match"],
    ["[1, 2] 3", "data after its end, at byte 7"],
    ["[1][2]", "data after its end"],
    ["[1, , 2]", "corrupt in element 2 at byte 3"],
    ["[1, 2,]", "corrupt in element 3 at byte 6"],
    ["[,]", "corrupt in element 1 at byte 1"],
    ['[{"a": 1} {"b": 2}]', "corrupt in element 1"],
    ["[{]}]", "a bracket that does not match"],
    ["[{[}]]", "corrupt in element 1"],
    ['{"a"}', "corrupt in element 1"],
    ["{1: 2}", "corrupt in element 1"],
    ['[NaN, "x"]', "corrupt in element 1"],
    [Uint8Array.from([0x5b, 0x22, 0xff, 0x22, 0x5d]), "its bytes are not UTF-8"],
    [new Uint8Array(100), "no JSON array or object"],
  ])("rejects %j", async (content, message) => {
    for (const options of [{}, { ...streamed, chunkBytes: 3 }]) {
      await expect(read(content, options)).rejects.toMatchObject({
        code: "BAD_DATA",
        message: expect.stringContaining(message),
      })
    }
    await expect(read(content)).rejects.toThrow("some.json")
  })

  it("reports a missing file, a folder, and a file that shrinks later", async () => {
    const missing = readElements(join(folder, "none.json"), () => true)
    await expect(missing).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringContaining("none.json cannot be read"),
    })
    await expect(readElements(folder, () => true)).rejects.toMatchObject({ code: "BAD_DATA" })
    const path = write('[{"a": 1}, {"b": 2}]')
    const kept = await readElements(path, () => true, streamed)
    truncateSync(path, 12)
    expect(kept.get(0).value).toEqual({ a: 1 })
    expect(() => kept.get(1)).toThrow(
      expect.objectContaining({ code: "BAD_DATA", message: expect.stringContaining("shorter") }),
    )
    writeFileSync(path, "[.................................")
    expect(() => kept.get(1)).toThrow(
      expect.objectContaining({ code: "BAD_DATA", message: expect.stringContaining("element 2") }),
    )
    rmSync(path)
    expect(() => kept.get(1)).toThrow(expect.objectContaining({ code: "IO" }))
  })

  it("stops at an abort, before and during reading", async () => {
    const path = write(JSON.stringify(Array.from({ length: 2000 }, (_, i) => i)))
    const early = readElements(path, () => true, { signal: AbortSignal.abort(new Error("enough")) })
    await expect(early).rejects.toThrow("enough")
    const controller = new AbortController()
    let seen = 0
    const late = readElements(
      path,
      () => {
        if (++seen === 100) controller.abort(new Error("stop"))
        return true
      },
      { signal: controller.signal, chunkBytes: 64 },
    )
    await expect(late).rejects.toThrow("stop")
    expect(seen).toBeLessThan(2000)
  })
})
