// Folders of tokenizers: each file changed, then a text encoded, decoded, and a chat rendered.
import { join } from "node:path"
import { Tokenizer } from "../../../modules/tokenizer/tokenizer.js"
import { trainByteLevelTokenizer } from "../../../modules/tokenizer/train.js"
import { writeTokenizer } from "../../../modules/tokenizer/write.js"
import { seedsOf, withChanged } from "./files.mjs"

const texts = Array(8).fill("<think>I push the box left.</think><action>left</action> 12 + 34 = 46\n")

export async function prepare(scratch) {
  const folder = join(scratch, "tokenizer")
  await writeTokenizer(folder, await trainByteLevelTokenizer(texts, { vocabularySize: 300 }))
  return {
    seeds: seedsOf(folder),
    run: (input) =>
      withChanged(folder, join(scratch, "changed"), input, async (changed) => {
        const tokenizer = await Tokenizer.open(changed, { timeoutMs: 250 })
        try {
          tokenizer.decode(tokenizer.encode("I push 12 boxes \u{1f600} <|im_end|> left."))
          await tokenizer.renderChat([{ role: "user", content: "Push." }], { addGenerationPrompt: true })
        } finally {
          await tokenizer.dispose()
        }
      }),
  }
}
