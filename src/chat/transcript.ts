import { createHash } from "node:crypto"
import { canonicalJson } from "../json/numbers.ts"
import { writeJson } from "../json/raw.ts"
import { compactJson, stringify } from "../json/text.ts"
import { atOnce, type Pieces } from "../util/pace.ts"
import { ApiError } from "./api-error.ts"
import type { Call, CallMessage, Tool, ToolCall } from "./call.ts"

/** A reply that was sampled, as far as later calls may go on from it. */
export interface KnownReply {
  /** Unlike that of any other. */
  readonly id: string
  /** What it replied to: the history of its call. */
  readonly history: string
  readonly prompt: Int32Array
  readonly tokens: Int32Array
  /** What the prompt had begun of the reply: a block of thought, or one that is empty. */
  readonly opening: string
  readonly content: string
  readonly reasoning: string
  readonly toolCalls: readonly ToolCall[]
  /** What it replied to in the client's words, whatever the replies in it were. */
  readonly words: string
}

/** What a call goes on from. */
export interface Continued {
  /** Identifies the messages of the call, replies by which they are and not by how the client wrote them. */
  readonly history: string
  /** [messages] The reply that each message is; undefined for what was said by others. */
  readonly replies: readonly (KnownReply | undefined)[]
  /** The last message before which everything is as it was when that reply was sampled; -1 where there is none. */
  readonly tip: number
  /** Identifies the messages as the client wrote them. */
  readonly words: string
  /** The last message that stands, in the client's words, where a reply was given; -1 where there is none. Behind the tip, it is not that reply. */
  readonly wordsTip: number
}

/**
 * What was said in one episode, or to all clients of one server. Clients send back what they were given in words of their own: arguments
 * are serialised anew, reasoning is dropped. A reply is known again by the ids of its calls, which only those know who were given them,
 * else by its text behind the very messages that it replied to. Never by a text alone: "Yes" may be anybody's, with another's thoughts
 * behind it, and whether it had been said already would be chance. What a client has changed is a message of its own.
 */
export class Transcript {
  readonly #most: number
  readonly #replies = new Set<KnownReply>()
  readonly #byId = new Map<string, KnownReply>()
  readonly #byCall = new Map<string, KnownReply>()
  readonly #byText = new Map<string, KnownReply>()
  readonly #byWords = new Map<string, KnownReply>()
  /** How many calls of each history there were. */
  readonly #calls = new Map<string, number>()

  /** @param most replies, and histories of calls, that are remembered; the oldest are forgotten first */
  constructor(most = Number.POSITIVE_INFINITY) {
    this.#most = most
  }

  /** In pieces of one message each. */
  *follow({
    messages,
    tools,
    toolChoice,
    variables = {},
  }: Pick<Call, "messages" | "tools" | "toolChoice" | "variables">): Pieces<Continued> {
    // What the prompt tells of besides the messages.
    const offered = digest("", toolChoice === "none" ? [] : tools.map(plainTool))
    const varied = Object.keys(variables).length > 0
    let [history, words] = [varied ? digest(offered, canonicalJson(writeJson(variables))) : offered, ""]
    let [tip, wordsTip] = [-1, -1]
    const replies: (KnownReply | undefined)[] = []
    for (const [index, message] of messages.entries()) {
      const reply = message.role === "assistant" ? this.#recognise(history, message) : undefined
      if (reply?.history === history) tip = index
      if (message.role === "assistant" && this.#byWords.has(words)) wordsTip = index
      const said = JSON.stringify(plain(message))
      yield
      history = yield* digestInPieces(history, reply ? JSON.stringify(["reply", [...reply.tokens]]) : said)
      words = yield* digestInPieces(words, said)
      replies.push(reply)
    }
    return { history, replies, tip, words, wordsTip }
  }

  /** Counts a call of this history; how many there were before. */
  count(history: string): number {
    const before = this.#calls.get(history) ?? 0
    this.#calls.set(history, before + 1)
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size <= this.#most) break
      this.#calls.delete(oldest)
    }
    return before
  }

  /** Keeps of the reply what later calls need, and nothing of what else comes with it. */
  add({ id, history, prompt, tokens, opening, content, reasoning, toolCalls, words }: KnownReply): void {
    const reply: KnownReply = { id, history, prompt, tokens, opening, content, reasoning, toolCalls, words }
    this.#replies.add(reply)
    this.#byId.set(reply.id, reply)
    for (const { id } of reply.toolCalls) this.#byCall.set(id, reply)
    for (const key of textKeys(reply)) {
      const same = this.#byText.get(key)
      // Of replies that read the same any will do, but not the one that happened to be given last.
      if (!same || reply.id < same.id) this.#byText.set(key, reply)
    }
    this.#byWords.set(reply.words, reply)
    for (const oldest of this.#replies) {
      if (this.#replies.size <= this.#most) break
      this.#forget(oldest)
    }
  }

  #forget(reply: KnownReply): void {
    this.#replies.delete(reply)
    const drop = <Key>(map: Map<Key, KnownReply>, key: Key) => map.get(key) === reply && map.delete(key)
    drop(this.#byId, reply.id)
    for (const { id } of reply.toolCalls) drop(this.#byCall, id)
    for (const key of textKeys(reply)) drop(this.#byText, key)
    drop(this.#byWords, reply.words)
  }

  #recognise(history: string, message: Extract<CallMessage, { role: "assistant" }>): KnownReply | undefined {
    if (message.reference !== undefined) {
      const known = this.#byId.get(message.reference)
      if (known) return known
      throw new ApiError(
        400,
        "The input refers to an item that is not known here, or not any more: send it whole (store: false).",
        { param: "input" },
      )
    }
    const [first] = message.toolCalls
    if (first) {
      const reply = this.#byCall.get(first.id)
      return reply && saysTheSame(message, reply) ? reply : undefined
    }
    return textKeys({ ...message, history })
      .map((key) => this.#byText.get(key))
      .find((reply) => reply !== undefined)
  }
}

type Said = Omit<Extract<CallMessage, { role: "assistant" }>, "role">

/** Whether a message with calls is this reply: text and thought beside calls are often dropped. */
function saysTheSame({ content, reasoning = "", toolCalls }: Said, reply: KnownReply): boolean {
  const kept = (text: string, given: string) => text.trim() === "" || text.trim() === given.trim()
  return (
    kept(content, reply.content) &&
    kept(reasoning, reply.reasoning) &&
    toolCalls.length === reply.toolCalls.length &&
    toolCalls.every((call, index) => isSameCall(call, reply.toolCalls[index]!))
  )
}

/** Many clients read arguments into doubles and write these: they did not change anything on purpose. */
function isSameCall(call: ToolCall, said: ToolCall): boolean {
  const given = asRead(call.arguments)
  const same = given === asRead(said.arguments) || given === asRead(inDoubles(said.arguments))
  return call.id === said.id && call.name === said.name && same
}

function inDoubles(json: string): string {
  return JSON.stringify(JSON.parse(json))
}

/** What a reply that calls nothing is found by, the surest first. Clients keep its text, and its thought or not. */
function textKeys({ history, content, reasoning = "", toolCalls }: Said & Pick<KnownReply, "history">): string[] {
  if (toolCalls.length > 0) return []
  const [text, thought] = [content.trim(), reasoning.trim()]
  return [...(thought ? [[text, thought]] : []), [text]].map((one) => digest(history, one))
}

function plain(message: CallMessage): unknown {
  if (message.role !== "assistant") return message
  return { ...message, toolCalls: plainCalls(message.toolCalls) }
}

/** A tool as prompts show it, however the client laid it out. */
function plainTool({ told }: Tool): string {
  return compactJson(stringify(told))
}

function plainCalls(calls: readonly ToolCall[]): readonly ToolCall[] {
  return calls.map(({ id, name, arguments: given }) => ({ id, name, arguments: asRead(given) }))
}

/** Arguments as they would be written by anybody: who has read them into an object may have sorted its keys. */
function asRead(json: string): string {
  try {
    return canonicalJson(json)
  } catch {
    return json
  }
}

function digest(before: string, value: unknown): string {
  return atOnce(digestInPieces(before, JSON.stringify(value)))
}

/** Characters between two places at which a digest can pause. */
const charactersPerPiece = 2 ** 17

function* digestInPieces(before: string, json: string): Pieces<string> {
  const hash = createHash("sha256").update(before).update("\n")
  for (let at = 0; at < json.length; ) {
    let end = at + charactersPerPiece
    if (isHighSurrogate(json.charCodeAt(end - 1))) end++ // both halves of a character are encoded together
    hash.update(json.slice(at, end))
    at = end
    yield
  }
  return hash.digest("base64url")
}

function isHighSurrogate(code: number): boolean {
  return (code & 0xfc00) === 0xd800
}
