import { argv } from "node:process"
import { fileURLToPath } from "node:url"
import { Random } from "../../src/util/random.ts"
import { nastyText } from "../tokenizer/nasty-text.ts"

/** Conversation without tools, as TRL and OpenAI write it. */
export type Conversation = { role: "system" | "user" | "assistant"; content: string }[]

/**
 * Conversations of one to nine messages whose contents break tokenizers: joiners, controls, whitespace at every edge, half-written tags.
 * Special tokens do not occur in contents, because transformers encodes those as special tokens and gigpo as text.
 */
export function adversarialConversations(count: number): Conversation[] {
  const random = new Random(2026)
  return Array.from({ length: count }, () => {
    const conversation: Conversation = random.below(2) === 0 ? [{ role: "system", content: content(random) }] : []
    for (let turns = 1 + random.below(4); turns > 0; turns--) {
      conversation.push({ role: "user", content: content(random) })
      if (turns > 1 || random.below(4) === 0) conversation.push({ role: "assistant", content: content(random) })
    }
    return conversation
  })
}

const content = (random: Random) => nastyText(random).replaceAll(/<\|(im_start|im_end|endoftext)\|>/g, "<|$1 |>")

// For scripts/fixtures/make_smollm2.py.
if (argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(adversarialConversations(3000)))
