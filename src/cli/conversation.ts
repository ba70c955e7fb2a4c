import { ApiError } from "../chat/api-error.ts"
import type { Call, CallMessage } from "../chat/call.ts"
import type { ReplyGenerator } from "../chat/reply-generator.ts"
import { GigpoError } from "../util/errors.ts"

/** What a reply is told in: what the model thinks, and what it says. */
export interface Said {
  readonly kind: "reasoning" | "content"
  readonly text: string
}

/** A conversation between one person and a model. */
export class Conversation {
  readonly #voice: ReplyGenerator
  #system: string | undefined
  #messages: CallMessage[] = []

  constructor(voice: ReplyGenerator, system?: string) {
    this.#voice = voice
    this.#system = system
  }

  /** Forgets what was said. */
  clear(): void {
    this.#messages = []
  }

  /** Begins anew, with this as what the model is told first; undefined for nothing. */
  instruct(system: string | undefined): void {
    this.#system = system
    this.clear()
  }

  /**
   * Says something to the model, and tells what it replies while it does. What it had said before `signal` stopped it stays said; where
   * it had said nothing, or could not, neither was anything said to it.
   *
   * @returns why the reply ended
   * @throws GigpoError `BAD_ARGUMENT` where the conversation has become too long for the model
   */
  async say(text: string, signal: AbortSignal, tell: (said: Said) => void): Promise<"stop" | "length" | "stopped"> {
    const messages: CallMessage[] = [...this.#messages, { role: "user", content: text }]
    let content = ""
    try {
      const [reply] = await this.#voice.reply(this.#call(messages), signal, (_, piece) => {
        if (piece.kind === "call") return // none is offered
        if (piece.kind === "content") content += piece.text
        tell(piece)
      })
      this.#messages = [...messages, { role: "assistant", content: reply!.content, toolCalls: [] }]
      return reply!.finishReason === "length" ? "length" : "stop"
    } catch (error) {
      if (error instanceof ApiError) throw new GigpoError("BAD_ARGUMENT", error.message, { cause: error })
      if (!signal.aborted) throw error
      if (content !== "") this.#messages = [...messages, { role: "assistant", content, toolCalls: [] }]
      return "stopped"
    }
  }

  #call(messages: readonly CallMessage[]): Call {
    const system = this.#system === undefined ? [] : [{ role: "system" as const, content: this.#system }]
    return {
      ...{ model: "", messages: [...system, ...messages], tools: [], toolChoice: "none", parallel: false },
      ...{ format: { kind: "text" }, stop: [], count: 1, stream: true, logProbs: false, topLogProbs: 0 },
      ...{ maxTokens: undefined, seed: undefined, temperature: undefined },
    }
  }
}
