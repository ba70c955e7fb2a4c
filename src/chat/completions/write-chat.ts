import { randomUUID } from "node:crypto"
import type { ApiError } from "../api-error.ts"
import { type Answer, countTokens, type ReplyDelta, type TokenText, toldLogProbs } from "../dialect.ts"
import type { SaidReply } from "../reply-generator.ts"
import { event } from "../sse.ts"
import type { ChatCall } from "./read-chat.ts"

// Responses of POST /v1/chat/completions: https://platform.openai.com/docs/api-reference/chat/object and /streaming

export class ChatAnswer implements Answer {
  readonly #head: { readonly id: string; readonly created: number; readonly model: string }
  readonly #call: ChatCall
  readonly #textOf: TokenText
  /** [choices] Number of tool calls sent so far. */
  readonly #calls: number[]

  constructor(call: ChatCall, textOf: TokenText) {
    this.#head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model: call.model }
    this.#call = call
    this.#textOf = textOf
    this.#calls = new Array(call.count).fill(0)
  }

  whole(replies: readonly SaidReply[]): string {
    const choices = replies.map((reply, index) => ({
      index,
      message: {
        role: "assistant",
        content: reply.content === "" && reply.toolCalls.length > 0 ? null : reply.content,
        refusal: null,
        ...(reply.reasoning !== "" && { reasoning_content: reply.reasoning }),
        ...(reply.toolCalls.length > 0 && {
          tool_calls: reply.toolCalls.map(({ id, name, arguments: given }) => ({
            id,
            type: "function",
            function: { name, arguments: given },
          })),
        }),
      },
      logprobs: this.#logProbs(reply),
      finish_reason: reply.finishReason,
      ...(this.#call.tokenIds && { token_ids: [...reply.tokens] }),
    }))
    const answer = { ...this.#head, object: "chat.completion", choices, usage: usage(replies), ...this.#ids(replies) }
    return JSON.stringify(answer)
  }

  /** First chunk of each choice, with the role. */
  begin(): string {
    return this.#calls.map((_, index) => this.#chunk(index, { role: "assistant", content: "" })).join("")
  }

  piece(index: number, piece: ReplyDelta): string {
    if (piece.kind !== "call")
      return this.#chunk(index, { [piece.kind === "content" ? "content" : "reasoning_content"]: piece.text })
    const { id, name, arguments: given } = piece
    const at = this.#calls[index]!++
    return this.#chunk(index, {
      tool_calls: [{ index: at, id, type: "function", function: { name, arguments: given } }],
    })
  }

  end(replies: readonly SaidReply[]): string {
    const last = replies.map((reply, index) => {
      const ids = this.#call.tokenIds && { token_ids: [...reply.tokens] }
      const ended = { finish_reason: reply.finishReason, logprobs: this.#logProbs(reply), ...ids }
      return this.#chunk(index, {}, ended, this.#ids(replies))
    })
    const counted = this.#call.usageInStream ? [this.#event({ choices: [], usage: usage(replies) })] : []
    return [...last, ...counted, event("[DONE]")].join("")
  }

  fail(error: ApiError): string {
    return event(error)
  }

  #chunk(index: number, delta: object, more: object = {}, beside: object = {}): string {
    const choice = { index, delta, logprobs: null, finish_reason: null, ...more }
    return this.#event({ choices: [choice], ...(this.#call.usageInStream && { usage: null }), ...beside })
  }

  #event(chunk: object): string {
    return event({ ...this.#head, object: "chat.completion.chunk", ...chunk })
  }

  #logProbs(reply: SaidReply): object | null {
    return this.#call.logProbs ? { content: toldLogProbs(reply, this.#textOf), refusal: null } : null
  }

  /** Token ids under vLLM's names, if requested. */
  #ids(replies: readonly SaidReply[]): object {
    return this.#call.tokenIds ? { prompt_token_ids: [...replies[0]!.prompt] } : {}
  }
}

function usage(replies: readonly SaidReply[]): object {
  const { prompt, reply, reasoning } = countTokens(replies)
  return {
    ...{ prompt_tokens: prompt, completion_tokens: reply, total_tokens: prompt + reply },
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: reasoning },
  }
}
