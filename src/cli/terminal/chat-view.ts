import { visible } from "../../util/visible.ts"
import type { ReplyPiece } from "../conversation.ts"
import type { Output } from "./screen.ts"

/** Prints completions while they are sampled: content to one stream, thinking and notes to another. */
export class ChatView {
  readonly #replies: Output
  readonly #notes: Output
  #kind: ReplyPiece["kind"] | undefined

  constructor(replies: Output, notes: Output) {
    this.#replies = replies
    this.#notes = notes
  }

  tell({ kind, text }: ReplyPiece): void {
    if (kind !== this.#kind) this.#turn(kind)
    this.#streamOf(kind).write(visible(text))
  }

  end(why: "stop" | "length" | "stopped"): void {
    this.#turn(undefined)
    if (why === "length") this.note("(truncated: raise --max-tokens, up to the model's maximum)")
    if (why === "stopped") this.note("(stopped)")
  }

  note(text: string): void {
    this.#notes.write(`${visible(text)}\n`)
  }

  #turn(kind: ReplyPiece["kind"] | undefined): void {
    if (this.#kind) this.#streamOf(this.#kind).write(this.#kind === "reasoning" ? "\n</think>\n" : "\n")
    if (kind === "reasoning") this.#notes.write("<think>\n")
    this.#kind = kind
  }

  #streamOf(kind: ReplyPiece["kind"]): Output {
    return kind === "content" ? this.#replies : this.#notes
  }
}
