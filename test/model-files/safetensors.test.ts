import { mkdir, mkdtemp, rm, truncate, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { openSafetensors, type TensorFiles } from "../../src/model-files/safetensors.ts"
import { parseSafetensorsHeader } from "../../src/model-files/safetensors-header.ts"
import { writeSafetensors } from "../../src/model-files/safetensors-writer.ts"
import { parseStrictJson } from "../../src/model-files/strict-json.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import { badModel, bytesOf, encode, tensor } from "./safetensors-files.ts"

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-safetensors-"))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

async function openBytes(bytes: Uint8Array): Promise<TensorFiles> {
  await writeFile(join(folder, "model.safetensors"), bytes)
  return openSafetensors(folder)
}

describe("openSafetensors on one file", () => {
  it("gives names in the order of the bytes, with dtype, shape and bytes", async () => {
    const header = `{"__metadata__":{"format":"pt"},"b":${tensor("BF16", "[3]", 8, 14)},"a":${tensor("F32", "[2,1]", 0, 8)}}   `
    const files = await openBytes(encode(header, 14))
    expect(files.names).toEqual(["a", "b"])
    expect(files.info("a")).toEqual({ dtype: "F32", shape: [2, 1], bytes: 8 })
    expect(files.info("b")).toEqual({ dtype: "BF16", shape: [3], bytes: 6 })
    expect(await bytesOf(files, "a")).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(await bytesOf(files, "b")).toEqual([9, 10, 11, 12, 13, 14])
    await files.close()
  })

  it("gives chunks that can be viewed as elements even where the file is not aligned", async () => {
    const header = `{"a":${tensor("U8", "[1]", 0, 1)},"b":${tensor("F32", "[2]", 1, 9)}}`
    const files = await openBytes(encode(header, 9))
    for await (const chunk of files.read("b"))
      expect(new Uint32Array(chunk.buffer, chunk.byteOffset, 2)[0]).toBe(0x05040302)
    await files.close()
  })

  it("reads a large tensor in chunks of at most 16 MiB that hold whole elements", async () => {
    const mebibyte = 1024 * 1024
    const elements = 9 * mebibyte + 3
    function* chunks() {
      for (let at = 0; at < elements; at += mebibyte) {
        yield new Uint8Array(Uint32Array.from({ length: Math.min(mebibyte, elements - at) }, (_, i) => at + i).buffer)
      }
    }
    const path = join(folder, "model.safetensors")
    await writeSafetensors(path, [{ name: "w", dtype: "F32", shape: [elements], chunks: chunks() }])
    const files = await openSafetensors(folder)
    const lengths: number[] = []
    let at = 0
    for await (const chunk of files.read("w")) {
      const numbers = new Uint32Array(chunk.buffer, 0, chunk.length / 4)
      expect(numbers[0]).toBe(at)
      expect(numbers.at(-1)).toBe(at + numbers.length - 1)
      lengths.push(chunk.length)
      at += numbers.length
    }
    expect(at).toBe(elements)
    expect(lengths).toEqual([16 * mebibyte, 16 * mebibyte, 4 * mebibyte + 12])
    await files.close()
  })

  it("treats __proto__ and constructor as tensor names like any other", async () => {
    const header = `{"__proto__":${tensor("F32", "[1]", 0, 4)},"constructor":${tensor("F32", "[1]", 4, 8)}}`
    const files = await openBytes(encode(header, 8))
    expect(files.names).toEqual(["__proto__", "constructor"])
    expect(await bytesOf(files, "__proto__")).toEqual([1, 2, 3, 4])
    expect(() => files.info("toString")).toThrow(badModel(/no tensor "toString"/))
    expect({}).not.toHaveProperty("dtype")
    await files.close()
  })

  it("accepts a tensor of another dtype but rejects to read it as weights", async () => {
    const files = await openBytes(encode(`{"n":${tensor("I64", "[1]", 0, 8)}}`, 8))
    expect(files.names).toEqual(["n"])
    expect(() => files.info("n")).toThrow(badModel(/"n" in .*model\.safetensors is I64/))
    await expect(files.read("n").next()).rejects.toEqual(badModel(/is I64/))
    await files.close()
  })

  it("accepts scalars, tensors without elements and a file without tensors", async () => {
    const header = `{"s":${tensor("F32", "[]", 0, 4)},"e":${tensor("F32", "[0,7]", 0, 0)}}`
    const files = await openBytes(encode(header, 4))
    expect(files.info("s")).toEqual({ dtype: "F32", shape: [], bytes: 4 })
    expect(await bytesOf(files, "e")).toEqual([])
    await files.close()
    const empty = await openBytes(encode("{}"))
    expect(empty.names).toEqual([])
    await empty.close()
  })

  it("rejects to read after close, and closes twice without harm", async () => {
    const files = await openBytes(encode(`{"a":${tensor("F32", "[1]", 0, 4)}}`, 4))
    await files.close()
    await files.close()
    await expect(bytesOf(files, "a")).rejects.toMatchObject({ code: "DISPOSED" })
  })

  it("reports a file that shrinks after it was opened", async () => {
    const bytes = encode(`{"a":${tensor("F32", "[2]", 0, 8)}}`, 8)
    const files = await openBytes(bytes)
    await truncate(join(folder, "model.safetensors"), bytes.length - 1)
    await expect(bytesOf(files, "a")).rejects.toEqual(badModel(/ended at byte/))
    await files.close()
  })
})

const a4 = tensor("F32", "[1]", 0, 4)
const malformedFiles: [what: string, file: Uint8Array, message: RegExp][] = [
  ["is empty", new Uint8Array(0), /only 0 bytes/],
  ["is shorter than 8 bytes", new Uint8Array(7), /only 7 bytes/],
  ["has no header", new Uint8Array(8), /does not start with "\{"/],
  ["claims a header longer than itself", encode("{}", 0, 3n), /claims 3 bytes/],
  ["claims a header of 2^64 - 1 bytes", encode("{}", 0, 2n ** 64n - 1n), /claims 18446744073709551615 bytes/],
  ["starts with a space", encode(" {}"), /does not start with/],
  ["has a list as header", encode("[]"), /does not start with/],
  ["has a byte order mark", encode("\ufeff{}"), /does not start with/],
  ["has invalid UTF-8", encode(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x7b, 0x7d, 0x7d)), /UTF-8/],
  ["has half a surrogate pair in a name", encode(`{"\\ud800":${a4}}`, 4), /not valid Unicode/],
  ["has JSON that breaks off", encode('{"a":'), /JSON cannot be read/],
  ["has text after the header", encode("{}x"), /unexpected text/],
  ["has a trailing comma", encode(`{"a":${a4},}`, 4), /expected a string/],
  ["has the same name twice", encode(`{"a":${a4},"a":${a4}}`, 4), /"a" occurs twice/],
  ["has the same name twice, once escaped", encode(`{"a":${a4},"\\u0061":${a4}}`, 4), /"a" occurs twice/],
  [
    "has a field twice",
    encode('{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4),
    /"dtype" occurs twice/,
  ],
  ["has metadata twice", encode('{"__metadata__":{},"__metadata__":{}}'), /"__metadata__" occurs twice/],
  ["has metadata that is a list", encode('{"__metadata__":[]}'), /__metadata__ must map/],
  ["has metadata that is null", encode('{"__metadata__":null}'), /__metadata__ must map/],
  ["has metadata with a number", encode('{"__metadata__":{"a":1}}'), /__metadata__ must map/],
  ["has a tensor that is a number", encode('{"a":1}'), /"a" is not described by an object/],
  ["lacks a dtype", encode('{"a":{"shape":[1],"data_offsets":[0,4]}}', 4), /has no dtype/],
  ["has an unknown dtype", encode(`{"a":${tensor("F33", "[1]", 0, 4)}}`, 4), /unknown dtype "F33"/],
  [
    "has a dtype that objects inherit",
    encode(`{"a":${tensor("toString", "[1]", 0, 4)}}`, 4),
    /unknown dtype "toString"/,
  ],
  ["lacks a shape", encode('{"a":{"dtype":"F32","data_offsets":[0,4]}}', 4), /has a shape that is not/],
  ["has a fractional dimension", encode(`{"a":${tensor("F32", "[1.5]", 0, 6)}}`, 6), /has a shape that is not/],
  [
    "has a dimension written as a fraction",
    encode(`{"a":${tensor("F32", "[1.0]", 0, 4)}}`, 4),
    /has a shape that is not/,
  ],
  ["has a dimension with an exponent", encode(`{"a":${tensor("F32", "[1e0]", 0, 4)}}`, 4), /has a shape that is not/],
  ["has a negative dimension", encode(`{"a":${tensor("F32", "[-1]", 0, 4)}}`, 4), /has a shape that is not/],
  [
    "has negative dimensions with a positive product",
    encode(`{"a":${tensor("F32", "[-1,-1]", 0, 4)}}`, 4),
    /has a shape that/,
  ],
  ["has a dimension of minus zero", encode(`{"a":${tensor("F32", "[-0]", 0, 0)}}`), /has a shape that is not/],
  ["has a dimension with a leading zero", encode(`{"a":${tensor("F32", "[01]", 0, 4)}}`, 4), /JSON cannot be read/],
  ["has a dimension that is a string", encode(`{"a":${tensor("F32", '["1"]', 0, 4)}}`, 4), /has a shape that is not/],
  ["has a dimension of 2^53", encode(`{"a":${tensor("U8", "[0,9007199254740992]", 0, 0)}}`), /has a shape that is not/],
  [
    "has a dimension of 2^53 + 1, which rounds",
    encode(`{"a":${tensor("U8", "[9007199254740993]", 0, 4)}}`, 4),
    /has a shape/,
  ],
  [
    "has a dimension of 2^64",
    encode(`{"a":${tensor("U8", "[18446744073709551616]", 0, 4)}}`, 4),
    /has a shape that is not/,
  ],
  [
    "has a product that wraps 64 bits",
    encode(`{"a":${tensor("F32", "[4294967296,4294967296]", 0, 0)}}`),
    /product overflows/,
  ],
  [
    "has a product that overflows before a zero",
    encode(`{"a":${tensor("F32", "[4294967296,4294967296,0]", 0, 0)}}`),
    /overflows/,
  ],
  ["lacks offsets", encode('{"a":{"dtype":"F32","shape":[1]}}', 4), /data_offsets that are not two/],
  [
    "has three offsets",
    encode('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}}', 4),
    /data_offsets that are not/,
  ],
  ["has a negative offset", encode(`{"a":${tensor("F32", "[1]", -4, 0)}}`, 4), /data_offsets that are not/],
  ["has a fractional offset", encode(`{"a":${tensor("F32", "[1]", 0, "4.0")}}`, 4), /data_offsets that are not/],
  ["has an end before its begin", encode(`{"a":${tensor("F32", "[1]", 4, 0)}}`, 4), /ends at byte 0, before it begins/],
  [
    "has fewer bytes than the shape needs",
    encode(`{"a":${tensor("F32", "[2]", 0, 4)}}`, 4),
    /takes 4 bytes, but .* need 8/,
  ],
  [
    "has more bytes than the shape needs",
    encode(`{"a":${tensor("F16", "[1]", 0, 4)}}`, 4),
    /takes 4 bytes, but .* need 2/,
  ],
  ["has half a byte", encode(`{"a":${tensor("F4", "[3]", 0, 2)}}`, 2), /takes 2 bytes, but .* need 1.5/],
  ["does not begin at its first byte", encode(`{"a":${tensor("F32", "[1]", 4, 8)}}`, 8), /begins at byte 4 where 0/],
  ["has a gap", encode(`{"a":${a4},"b":${tensor("F32", "[1]", 8, 12)}}`, 12), /begins at byte 8 where 4/],
  [
    "has an overlap",
    encode(`{"a":${tensor("F32", "[2]", 0, 8)},"b":${tensor("F32", "[1]", 4, 8)}}`, 8),
    /begins at byte 4 where 8/,
  ],
  ["has two tensors on the same bytes", encode(`{"a":${a4},"b":${a4}}`, 4), /begins at byte 0 where 4/],
  [
    "has an empty tensor within another",
    encode(`{"a":${a4},"b":${tensor("F32", "[0]", 2, 2)}}`, 4),
    /begins at byte 2 where 4/,
  ],
  [
    "ends before its tensors do",
    encode(`{"a":${tensor("F32", "[2]", 0, 8)}}`, 7),
    /take 8 bytes, but the file holds 7/,
  ],
  ["has trailing bytes", encode(`{"a":${a4}}`, 5), /take 4 bytes, but the file holds 5/],
  ["has bytes but no tensors", encode("{}", 1), /take 0 bytes, but the file holds 1/],
  ["is nested without end", encode(`{"a":${"[".repeat(100_000)}`), /nested deeper/],
]

describe("openSafetensors rejects a file that", () => {
  it.each(malformedFiles)("%s", async (_, file, message) => {
    await expect(openBytes(file)).rejects.toEqual(badModel(message))
    await expect(openBytes(file)).rejects.toEqual(badModel(/model\.safetensors .*again\.$/))
  })

  it("claims a header above 100 MB, without reading it", async () => {
    await writeFile(join(folder, "model.safetensors"), encode("{}", 0, 100_000_001n))
    await truncate(join(folder, "model.safetensors"), 100_000_009)
    await expect(openSafetensors(folder)).rejects.toEqual(badModel(/claims 100000001 bytes .*at most 100000000/))
  })

  it("has more values than any model", () => {
    const header = new TextEncoder().encode(`{"a":${tensor("F32", `[${"1,".repeat(2_100_000)}1]`, 0, 4)}}`)
    expect(() => parseSafetensorsHeader(header, 4, "x")).toThrow(badModel(/more than 2000000 values/))
  })

  it("is a folder", async () => {
    await mkdir(join(folder, "model.safetensors"))
    await expect(openSafetensors(folder)).rejects.toEqual(badModel(/is not a file/))
  })

  it("keeps a hostile name short in the message", async () => {
    const error = await openBytes(encode(`{"${"\\n".repeat(5000)}":1}`)).catch((e: unknown) => e)
    expect(error).toEqual(badModel(/not described by an object/))
    expect((error as Error).message).not.toContain("\n")
    expect((error as Error).message.length).toBeLessThan(1000)
  })
})

describe("parseSafetensorsHeader under mutation", () => {
  const header = new TextEncoder().encode(
    `{"__metadata__":{"format":"pt"},"model.a":${tensor("F32", "[2,3]", 0, 24)},` +
      `"model.b":${tensor("BF16", "[4]", 24, 32)},"e":${tensor("F16", "[0]", 32, 32)},"\\u00e9":${tensor("I64", "[]", 32, 40)}}  `,
  )
  const pieces = [
    "0",
    "9",
    "-",
    ".5",
    "e1",
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    " ",
    "\\u0000",
    "\\ud800",
    "F64",
    '"a":',
  ]
  const bits: Record<string, number> = {
    F16: 16,
    BF16: 16,
    F32: 32,
    F64: 64,
    I64: 64,
    I32: 32,
    I16: 16,
    U16: 16,
    U32: 32,
    U64: 64,
  }

  it("yields the same tensors, other tensors that keep every rule, or GigpoError, and nothing else", () => {
    const random = new Random(20_250_510)
    const original = [...parseSafetensorsHeader(header, 40, "x").tensors]
    let [same, other, refused] = [0, 0, 0]
    for (let round = 0; round < 4000; round++) {
      let bytes = [...header]
      for (let edits = 1 + random.below(3); edits > 0 && bytes.length > 0; edits--) {
        const at = random.below(bytes.length)
        const kind = random.below(5)
        if (kind === 0) bytes[at] = random.below(256)
        if (kind === 1) bytes.splice(at, 1 + random.below(4))
        if (kind === 2) bytes.splice(at, 0, ...new TextEncoder().encode(pieces[random.below(pieces.length)]))
        if (kind === 3) bytes[at] = bytes[random.below(bytes.length)]!
        if (kind === 4) bytes = bytes.slice(0, at + 1)
      }
      try {
        const tensors = [...parseSafetensorsHeader(Uint8Array.from(bytes), 40, "x").tensors]
        if (JSON.stringify(tensors) === JSON.stringify(original)) same++
        else other++
        let covered = 0
        for (const [, { dtype, shape, begin, end }] of tensors) {
          expect(begin).toBe(covered)
          expect(shape.every((n) => Number.isSafeInteger(n) && n >= 0)).toBe(true)
          if (dtype in bits) expect((end - begin) * 8).toBe(shape.reduce((a, b) => a * b, bits[dtype]!))
          covered = end
        }
        expect(covered).toBe(40)
      } catch (error) {
        if (!(error instanceof GigpoError)) throw error
        expect(error.code).toBe("BAD_MODEL")
        refused++
      }
    }
    // The mutations reach all three outcomes, or this test would show little.
    expect(Math.min(same, other, refused)).toBeGreaterThan(20)
  })
})

describe("parseStrictJson", () => {
  const plain = (value: unknown): unknown => {
    if (typeof value === "bigint") return Number(value)
    if (Array.isArray(value)) return value.map(plain)
    return value instanceof Map ? Object.fromEntries([...value].map(([k, v]) => [k, plain(v)])) : value
  }

  it("agrees with JSON.parse on all commonly accepted texts", () => {
    const text = ' {"a" : [1, -2.5e-3, 1E+2, true, false, null, "\\"\\\\\\u00e9\\n", {}, [ ]], "\\\\": {"b":{"c":0}}}\n'
    expect(plain(parseStrictJson(text))).toEqual(JSON.parse(text))
  })

  it.each([
    "",
    "{",
    "[1,]",
    "[1 2]",
    "nul",
    "+1",
    "1.",
    ".5",
    "0x1",
    '"\t"',
    '"\\x"',
    '"a',
    "'a'",
    "{a:1}",
    '{"a" 1}',
    "NaN",
    "1 2",
  ])("rejects %j as JSON.parse does", (text) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError)
    expect(() => parseStrictJson(text)).toThrow(SyntaxError)
  })
})

describe("openSafetensors on a folder", () => {
  it.each(["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "consolidated.00.pth", "model.pt"])(
    "explains how to convert %s",
    async (name) => {
      await writeFile(join(folder, name), "")
      await expect(openSafetensors(folder)).rejects.toEqual(badModel(/can run code.*save_pretrained/))
    },
  )

  it("lists the expected files if there is no model", async () => {
    await expect(openSafetensors(folder)).rejects.toEqual(badModel(/neither model\.safetensors nor/))
    await expect(openSafetensors(join(folder, "absent"))).rejects.toEqual(badModel(/is not a folder/))
  })
})

describe("sharded models", () => {
  const indexName = "model.safetensors.index.json"
  const one = encode(`{"a":${a4}}`, 4)
  const two = encode(`{"b":${a4},"c":${tensor("F32", "[1]", 4, 8)}}`, 8)
  const openIndexed = async (
    index: string,
    files: Record<string, Uint8Array> = { "1.safetensors": one, "2.safetensors": two },
  ) => {
    await writeFile(join(folder, indexName), index)
    for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes)
    return openSafetensors(folder)
  }
  const map = (weights: Record<string, unknown>): string =>
    JSON.stringify({ metadata: { total_size: 12.0 }, weight_map: weights })
  const good = { a: "1.safetensors", b: "2.safetensors", c: "2.safetensors" }

  it("are read as one", async () => {
    const files = await openIndexed(map(good))
    expect(files.names).toEqual(["a", "b", "c"])
    expect(await bytesOf(files, "c")).toEqual([5, 6, 7, 8])
    await files.close()
  })

  it.each([
    ["a missing file", map({ ...good, d: "3.safetensors" }), /names "3.safetensors", which is missing/],
    [
      "a tensor that its file lacks",
      map({ ...good, d: "2.safetensors" }),
      /"d" for 2.safetensors, which lacks the tensor/,
    ],
    ["a tensor in the wrong file", map({ ...good, c: "1.safetensors" }), /does not list tensor "c" for 2.safetensors/],
    ["a tensor that it does not name", map({ a: good.a, b: good.b }), /does not list tensor "c"/],
    ["a tensor twice", `{"weight_map":{"a":"1.safetensors","a":"1.safetensors"}}`, /"a" occurs twice/],
    ["a path upwards", map({ ...good, a: "../1.safetensors" }), /of the same folder/],
    ["an absolute path", map({ ...good, a: "/tmp/1.safetensors" }), /of the same folder/],
    ["a path with backslashes", map({ ...good, a: "..\\1.safetensors" }), /of the same folder/],
    ["a subfolder", map({ ...good, a: "x/1.safetensors" }), /of the same folder/],
    ["a name with a zero byte", map({ ...good, a: "1\0.safetensors" }), /of the same folder/],
    ["its own folder", map({ ...good, a: ".." }), /of the same folder/],
    ["a pickle file", map({ ...good, a: "1.bin" }), /of the same folder/],
    ["a number", map({ ...good, a: 1 }), /of the same folder/],
    ["no weight_map", "{}", /no weight_map/],
    ["a weight_map that is a list", '{"weight_map":[]}', /no weight_map/],
    ["no object", "[]", /no weight_map/],
    ["no JSON", "weights", /JSON cannot be read/],
  ])("are rejected when the index has %s", async (_, index, message) => {
    await expect(openIndexed(index)).rejects.toEqual(badModel(message))
  })

  it("are rejected when two files hold the same tensor", async () => {
    const twice = { "1.safetensors": one, "2.safetensors": encode(`{"a":${a4},"b":${tensor("F32", "[1]", 4, 8)}}`, 8) }
    const index = map({ a: "1.safetensors", b: "2.safetensors" })
    await expect(openIndexed(index, twice)).rejects.toEqual(badModel(/does not list tensor "a" for 2.safetensors/))
  })

  it("are rejected when one of the files is malformed", async () => {
    const files = { "1.safetensors": one, "2.safetensors": two.subarray(0, two.length - 1) }
    await expect(openIndexed(map(good), files)).rejects.toEqual(badModel(/2\.safetensors is damaged/))
  })
})
