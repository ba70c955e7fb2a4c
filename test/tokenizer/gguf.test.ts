import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type TypedValue, writeGguf } from "../../src/model-files/gguf/write.ts"
import { storeTokenizer } from "../../src/tokenizer/gguf/store.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { Random } from "../../src/util/random.ts"

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gigpo-gguf-tokenizer-"))
  path = join(folder, "model.gguf")
  process.env.GIGPO_STATE = join(folder, "state")
})
afterEach(async () => {
  delete process.env.GIGPO_STATE
  await rm(folder, { recursive: true })
})

type Change = (metadata: Map<string, TypedValue>) => unknown
const text = (value: string): TypedValue => ({ type: "string", value })

/** Pieces of a SentencePiece vocabulary, the most frequent first, then characters. */
const pieces = ["▁t", "he", "in", "▁the", "▁a", "▁▁", "th", "hen", "▁i", "▁then", "an", "é", ..."▁theain"]
const controls = ["<unk>", "<s>", "</s>", "<turn>"]
const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`)
const tokens = [...controls, ...bytes, ...new Set(pieces)]
const first = controls.length + bytes.length
const scores = tokens.map((_, id) => (id < first ? 0 : first - id))

async function open(change: Change = () => {}): Promise<Tokenizer> {
  const key = (name: string) => `tokenizer.ggml.${name}`
  const types = tokens.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id === 3 ? 4 : id < first ? 6 : 1))
  const metadata = new Map<string, TypedValue>([
    ["general.architecture", text("llama")],
    [key("model"), text("llama")],
    [key("tokens"), { type: "strings", value: tokens }],
    [key("scores"), { type: "float32s", value: scores }],
    [key("token_type"), { type: "int32s", value: types }],
    [key("unknown_token_id"), { type: "uint32", value: 0 }],
    [key("bos_token_id"), { type: "uint32", value: 1 }],
    [key("eos_token_id"), { type: "uint32", value: 2 }],
    ["tokenizer.chat_template", text("{{ messages[0]['content'] }}")],
  ])
  change(metadata)
  await rm(path, { force: true })
  await writeGguf(path, metadata, [])
  return await Tokenizer.open(path)
}

/** SentencePiece's algorithm: of all neighbors whose concatenation is a piece, the pair with the highest score is merged first. */
function sentencePiece(input: string): number[] {
  const ids = new Map(
    tokens.map((token, id) => [token, id]).filter(([, id]) => (id as number) >= first) as [string, number][],
  )
  const parts = [...input.replaceAll(" ", "▁")]
  for (;;) {
    let best = -1
    for (let i = 0; i + 1 < parts.length; i++) {
      const id = ids.get(parts[i]! + parts[i + 1]!)
      if (id === undefined) continue
      const held = best < 0 ? undefined : ids.get(parts[best]! + parts[best + 1]!)
      if (held === undefined || scores[id]! > scores[held]!) best = i
    }
    if (best < 0) break
    parts.splice(best, 2, parts[best]! + parts[best + 1]!)
  }
  return parts.flatMap((part) => {
    const id = ids.get(part)
    return id === undefined ? [...Buffer.from(part)].map((byte) => controls.length + byte) : [id]
  })
}

/** Folder and tokenizer.json of a tokenizer, which is closed. */
async function readTokenizer(tokenizer: Tokenizer) {
  await tokenizer[Symbol.asyncDispose]()
  const { directory } = tokenizer
  return { directory, json: JSON.parse(await readFile(join(directory, "tokenizer.json"), "utf8")) }
}

describe("a SentencePiece tokenizer of a GGUF file", () => {
  it.each([true, false])("gives SentencePiece's ids for random texts, with a space before them: %s", async (prefix) => {
    await using tokenizer = await open((m) => m.set("tokenizer.ggml.add_space_prefix", { type: "bool", value: prefix }))
    const random = new Random(3)
    const alphabet = [..."theainé ", "x", "日", " ", "the", "then "]
    for (let i = 0; i < 2000; i++) {
      const input = Array.from({ length: 1 + random.below(12) }, () => alphabet[random.below(alphabet.length)]).join("")
      expect([...tokenizer.encode(input)], JSON.stringify(input)).toEqual(sentencePiece(prefix ? ` ${input}` : input))
    }
  })

  it("reads control and user-defined tokens in a text, and decodes to the same text", async () => {
    await using tokenizer = await open()
    expect([...tokenizer.encode("<turn>")]).toEqual([3])
    expect(tokenizer.decode(tokenizer.encode("then 日 the"))).toBe("then 日 the")
    expect(tokenizer.decode([3, 2], { skipSpecial: true })).toBe("<turn>")
    expect(tokenizer.eosTokens).toEqual([2])
  })

  it("names every end of a turn", async () => {
    await using tokenizer = await open((m) => m.set("tokenizer.ggml.eot_token_id", { type: "uint32", value: 3 }))
    expect(tokenizer.eosTokens).toEqual([2, 3])
  })

  it.each([true, false])("is stored in a GGUF file as it was, with a space before texts: %s", async (prefix) => {
    const wanted = await readTokenizer(
      await open((m) => m.set("tokenizer.ggml.add_space_prefix", { type: "bool", value: prefix })),
    )
    const stored = await storeTokenizer(wanted.directory, tokens.length + 3, [2])
    const found = await readTokenizer(
      await open((m) => {
        for (const [key, value] of stored) m.set(key, value)
      }),
    )
    expect(found.json.model).toEqual(wanted.json.model)
    expect(found.json.added_tokens).toEqual(wanted.json.added_tokens)
    expect(found.json.normalizer).toEqual(wanted.json.normalizer)
  })

  it("is not stored where no scores give its merges", async () => {
    const { directory, json } = await readTokenizer(await open())
    const shuffled = { ...json, model: { ...json.model, merges: json.model.merges.toReversed() } }
    await writeFile(join(directory, "tokenizer.json"), JSON.stringify(shuffled))
    await expect(storeTokenizer(directory, tokens.length, [2])).rejects.toMatchObject({ code: "BAD_TOKENIZER" })
  })

  it("has the named templates of the file", async () => {
    await using tokenizer = await open((m) => m.set("tokenizer.chat_template.tool_use", text("tools")))
    expect(tokenizer.toolTemplate).toBe("tools")
  })
})

describe("a tokenizer of a GGUF file is rejected", () => {
  it.each<[string, Change, string]>([
    ["of another kind", (m) => m.set("tokenizer.ggml.model", text("bert")), '"bert"'],
    ["without tokens", (m) => m.delete("tokenizer.ggml.tokens"), "no list of tokens"],
    ["with too few types", (m) => m.set("tokenizer.ggml.token_type", { type: "int32s", value: [1] }), "1 token types"],
    ["without scores", (m) => m.delete("tokenizer.ggml.scores"), "no score for each token"],
    [
      "with a template that is a number",
      (m) => m.set("tokenizer.chat_template", { type: "uint32", value: 1 }),
      "not a string",
    ],
    ["with a template named ../x", (m) => m.set("tokenizer.chat_template.../x", text("x")), "../x"],
    ["without an end of text", (m) => m.delete("tokenizer.ggml.eos_token_id"), "eos_token"],
    [
      "with a pre-tokenizer that is not known",
      (m) => m.set("tokenizer.ggml.model", text("gpt2")).set("tokenizer.ggml.pre", text("viking")),
      '"viking"',
    ],
    ["without a pre-tokenizer", (m) => m.set("tokenizer.ggml.model", text("gpt2")), "no pre-tokenizer"],
  ])("%s", async (_, change, message) => {
    await expect(open(change)).rejects.toMatchObject({
      code: "BAD_TOKENIZER",
      message: expect.stringContaining(message),
    })
  })
})
