import { integer, oneOf } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import type { OptionsOf } from "../../options/table.ts"
import { askFields, askFor } from "./ask.ts"
import type { PromptMemory } from "./memory.ts"
import { formatTurns, historyField, recentTurns } from "./recent.ts"
import { titled } from "./tagged.ts"

export const chunkFields = {
  chunkSize: integer(
    20_000,
    "Characters of a chunk; about 4 make a token. Longer observations are split into several chunks.",
    {
      min: 1,
    },
  ),
  question: oneOf("first", ["first", "last"], "Paragraph of a long observation that contains the question."),
  history: historyField(0),
  ...askFields,
}

/** Options of `chunkMemory`. */
export type ChunkOptions = OptionsOf<typeof chunkFields>

/**
 * Prompt memory that reads long observations in chunks, as MemAgent does (BytedTsinghua-SIA/MemAgent, recurrent/). For each chunk the policy
 * sees the question, its notes so far and the chunk, and rewrites the notes, each time in a separate conversation. The action is
 * sampled from question and notes only. MemAgent limits chunks to 5000 and notes to 1024 tokens; here the limits are `size` in characters
 * and `maxTokens`. Our interpretation: the question is one paragraph of the observation, since an observation has no other structure.
 */
export function chunkMemory(given: ChunkOptions = {}): PromptMemory {
  const { chunkSize, question: place, history: length, ...options } = readOptions("chunkMemory", given, chunkFields)
  return {
    name: "chunks",
    start(context) {
      let [read, notes] = ["", ""]
      return {
        async render(history, now) {
          const past = titled("Your last steps:", formatTurns(recentTurns(history, length)))
          if (now.text.length <= chunkSize) return past.join()
          const [question, text] = divide(now.text, place)
          if (read !== now.text) {
            notes = ""
            for (const [index, chunk] of cut(text, chunkSize).entries()) {
              const paragraphs = [
                `You read a long text, one part after the other, to answer this:\n${question}`,
                ...titled("Your notes so far:", notes),
                `The next part:\n${chunk}`,
                "Rewrite your notes: keep their content, and add what this part contributes to the question.",
              ]
              const state = {
                anchor: `chunks ${index}\n${now.anchor}`,
                conversation: `chunks ${history.length} ${index}`,
              }
              notes = await askFor(context, paragraphs, { ...options, ...state })
            }
            read = now.text
          }
          return { past: [...past, ...titled("Your notes:", notes)].join("\n\n"), observation: question }
        },
      }
    },
  }
}

/** Splits a text into the paragraph with the question and the rest. */
function divide(text: string, place: "first" | "last"): [question: string, rest: string] {
  const paragraphs = text.split(/\n\s*\n/)
  const [question = ""] = place === "first" ? paragraphs.splice(0, 1) : paragraphs.splice(-1)
  return [question, paragraphs.join("\n\n")]
}

/** Cuts a text into pieces of at most `size` code points, at white space if possible. */
export function cut(text: string, size: number): string[] {
  const pieces: string[] = []
  let rest = Array.from(text.trim())
  while (rest.length > size) {
    const end = rest.slice(0, size + 1).findLastIndex((character) => /\s/.test(character))
    const taken = end > 0 ? end : size
    pieces.push(rest.slice(0, taken).join("").trim())
    rest = Array.from(rest.slice(taken).join("").trimStart())
  }
  const last = rest.join("").trim()
  return last === "" ? pieces : [...pieces, last]
}
