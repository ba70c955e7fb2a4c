import { character, except } from "../../grammar/characters.ts"
import { choice, type Node, nothing, optional, rule, sequence, text } from "../../grammar/node.ts"
import { calling, readCalled } from "./called.ts"
import type { Piece, ReplyReader, ToolFormat } from "./format.ts"
import { MarkedText } from "./marked-text.ts"

// Qwen 2.5 and 3, and Hermes before them: first <think>…</think>, then text, and each call as a JSON object in
// <tool_call> tags. Templates of models that always think (Qwen, DeepSeek) end the prompt with <think>; those of models
// that must not think end with the closing tag.

const [think, endThink, call, endCall] = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
const writing = { key: "arguments", around: [`${call}\n`, `\n${endCall}`], between: "\n" } as const

/** @param thinks - whether the model was trained to think first */
export function qwen(thinks: boolean): ToolFormat {
  return {
    name: "qwen",
    opening: (prompt) => /(?:<think>\s*)?(?:<\/think>\s*)?$/.exec(prompt)![0],
    reader: ({ tools, opening }) => new QwenReader(tools, isOpen(opening)),
    grammar(tools, toolChoice, parallel, opening, answer) {
      const rest = sequence(without(endThink), text(`${endThink}\n\n`))
      const thoughts = isOpen(opening)
        ? rest
        : thinks && opening === ""
          ? optional(sequence(text(think), rest))
          : nothing
      const { calls, must, held } = calling(tools, toolChoice, parallel, writing)
      if (calls && must) return sequence(thoughts, calls)
      if (answer) return sequence(thoughts, calls ? choice([answer, calls]) : answer)
      if (!calls || !held) return undefined
      return choice([without(call), sequence(without(call), calls)])
    },
  }
}

function isOpen(opening: string): boolean {
  return opening !== "" && !opening.includes(endThink)
}

/** Text without the mark, whose first character must occur in the mark only once. */
function without(mark: string): Node {
  // In state i the last i characters are the first i characters of the mark.
  const [first] = mark
  const states: Node[] = [...mark].map((char, index) =>
    rule(() => {
      const on = index + 1 < mark.length ? [sequence(text(char), states[index + 1]!)] : []
      const anew = index > 0 ? [sequence(text(first!), states[1]!)] : []
      const known = [...new Set([first!, char])].map((one) => [one.charCodeAt(0), one.charCodeAt(0)] as const)
      return choice([nothing, ...on, ...anew, sequence(character(except(known)), states[0]!)])
    }),
  )
  return states[0]!
}

class QwenReader implements ReplyReader {
  broken = false
  readonly #text = new MarkedText()
  readonly #tools: boolean
  #state: "start" | "reasoning" | "content" | "call"
  /** White space that is content only if more content follows. */
  #space = ""
  #call = ""
  #head = ""
  /** Whether the head is only white space. */
  #blank = true
  #begun = false

  constructor(tools: boolean, thinking: boolean) {
    this.#tools = tools
    this.#state = thinking ? "reasoning" : "start"
  }

  get thinking(): boolean {
    return this.#state === "reasoning"
  }

  read(text: string): Piece[] {
    const pieces: Piece[] = []
    for (let more = this.#state === "start" ? this.#begin(text) : text; ; more = "") {
      const { before, mark } = this.#text.take(more, this.#marks())
      pieces.push(...this.#piece(before))
      if (mark === undefined) return pieces
      pieces.push(...this.#mark(mark))
    }
  }

  /** Detects leading thinking. Returns the text left to read once that is decided. */
  #begin(text: string): string {
    this.#head += text
    if (isBlank(text) && this.#blank) return ""
    this.#blank = false
    const begun = this.#head.trimStart()
    if (begun.length < think.length && think.startsWith(begun)) return ""
    const thinks = begun.startsWith(think)
    this.#state = thinks ? "reasoning" : "content"
    return thinks ? begun.slice(think.length) : this.#head
  }

  end(): Piece[] {
    if (this.#state === "start") return this.#content(this.#head)
    const pieces = this.#piece(this.#text.rest())
    if (this.#state !== "call") return pieces
    return [...pieces, ...this.#noCall(call + this.#call)]
  }

  #marks(): readonly string[] {
    if (this.#state === "reasoning") return [endThink]
    if (this.#state === "call") return [endCall]
    return this.#tools ? [call] : []
  }

  #piece(text: string): Piece[] {
    if (text === "") return []
    if (this.#state === "call") {
      this.#call += text
      return []
    }
    return this.#state === "reasoning" ? this.#reasoning(text) : this.#content(text)
  }

  #reasoning(text: string): Piece[] {
    return this.#settled(text).map((settled) => ({ kind: "reasoning", text: settled }))
  }

  #content(text: string): Piece[] {
    return this.#settled(text).map((settled) => ({ kind: "content", text: settled }))
  }

  /** White space at the ends is part of the format. */
  #settled(text: string): string[] {
    if (this.#begun && isBlank(text)) {
      this.#space += text
      return []
    }
    const whole = this.#begun ? this.#space + text : text.trimStart()
    const settled = whole.trimEnd()
    this.#space = whole.slice(settled.length)
    if (settled === "") return []
    this.#begun = true
    return [settled]
  }

  #mark(mark: string): Piece[] {
    this.#space = ""
    this.#begun = this.#begun && mark === call // white space after a block is trimmed again
    if (mark === endThink) this.#state = "content"
    if (mark === call) {
      this.#state = "call"
      this.#call = ""
    }
    if (mark !== endCall) return []
    this.#state = "content"
    const called = readCalled(this.#call.trim(), "arguments")
    return called ? [called] : this.#noCall(call + this.#call + endCall)
  }

  /** An incomplete or malformed call is text. */
  #noCall(text: string): Piece[] {
    this.#state = "content"
    this.broken = true
    return this.#content(text)
  }
}

/** White space may arrive in many pieces; only the new piece is checked. */
function isBlank(text: string): boolean {
  return text.trimStart() === ""
}
