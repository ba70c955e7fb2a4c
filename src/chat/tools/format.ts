import type { Node } from "../../grammar/node.ts"
import type { Tool, ToolChoice } from "../call.ts"
import { llama } from "./llama.ts"
import { qwen } from "./qwen.ts"

/** What a reply is made of, in the order in which it is read. */
export type Piece =
  | { readonly kind: "reasoning" | "content"; readonly text: string }
  | { readonly kind: "call"; readonly name: string; readonly arguments: string }

/** Reads a reply as it is sampled. What may still turn out to be something else is held back. */
export interface ReplyReader {
  read(text: string): Piece[]
  /** What was held back, once nothing follows. */
  end(): Piece[]
  /** Whether what was read so far ends within a thought. */
  readonly thinking: boolean
  /** Whether it has begun a call that cannot be read; all that have are known at the end. */
  readonly broken: boolean
}

/** How a family of models writes calls of tools. */
export interface ToolFormat {
  readonly name: string
  /** What of a reply the prompt that ends so has written already: the beginning of a thought, a thought that is empty, or nothing. */
  opening(prompt: string): string
  /** @param tools whether any are offered: where none are, what looks like a call is text */
  reader(options: { readonly tools: boolean; readonly opening: string }): ReplyReader
  /** A reply that calls as it must, or is an `answer` where that must be of a form: undefined where any text will do. */
  grammar(
    tools: readonly Tool[],
    choice: ToolChoice,
    parallel: boolean,
    opening: string,
    answer?: Node,
  ): Node | undefined
}

/** The format that a chat template teaches. Templates without tools are read as Qwen's. */
export function toolFormat(chatTemplate: string | undefined): ToolFormat {
  const source = chatTemplate ?? ""
  return !source.includes("<tool_call>") && /python_tag|<\|eom_id\|>|"parameters"/.test(source)
    ? llama
    : qwen(source.includes("<think>"))
}
