import { createHash } from "node:crypto"
import type { Completion, SampleRequest, Sampler } from "../engine/engine.ts"
import type { Constraint, Vocabulary } from "../engine/native/constraint.ts"
import { TooManyTokens } from "../tokenizer/too-many-tokens.ts"
import { GigpoError } from "../util/errors.ts"
import { Pace } from "../util/pace.ts"
import { ApiError, badField } from "./api-error.ts"
import { Attempt, Attempts, type Came } from "./attempt.ts"
import type { Call } from "./call.ts"
import { type Arrival, CallOrder, type Turn } from "./call-order.ts"
import { Constraints } from "./constraints.ts"
import type { ReplyDelta } from "./dialect.ts"
import { type PromptCodec, promptTokens } from "./prompt.ts"
import { type ParsedReply, ReplyParser } from "./reply-parser.ts"
import { type ToolFormat, toolFormat } from "./tools/format.ts"
import type { Continued, KnownReply, Transcript } from "./transcript.ts"

/** A tokenizer, as far as the endpoint needs it. */
export interface ReplyCodec extends PromptCodec {
  decode(tokens: Int32Array, options: { readonly skipSpecial: boolean }): string
  readonly chatTemplate: string | undefined
  /** Source of the template for chats with tools. Default: the chat template. */
  readonly toolTemplate?: string | undefined
  /** Absent where it cannot be told; then nothing can be held to a grammar. */
  vocabulary?(): Vocabulary
}

export interface ReplyGeneratorSetup {
  /** What replies are sampled from; who is no model may look at the call. */
  readonly policy: Pick<Sampler, "maxPositions"> & {
    sample(request: SampleRequest, call: Call): Promise<Completion>
  }
  readonly codec: ReplyCodec
  readonly transcript: Transcript
  /** Those of all voices with this codec. Default: its own. */
  readonly constraints?: Constraints | undefined
  /** Where a call does not say; `fixed` where it may not say otherwise. */
  readonly temperature: { readonly value: number; readonly fixed: boolean }
  /** Most tokens of a reply where a call does not say; with `fixed`, calls may only ask for fewer. The model's positions limit both. */
  readonly maxCompletionTokens: { readonly value: number; readonly fixed: boolean }
  /** Most tokens of a prompt and its reply. Default: the policy's positions. */
  readonly maxPositions?: number | undefined
  /**
   * Keys the random numbers of a call's reply, and names it: `history` stands for the messages, `number` is the reply's among those of
   * one call, and `again` counts the calls of one history. A call with a seed is answered alike each time: `again` is 0.
   */
  readonly key: (place: {
    readonly call: Call
    readonly history: string
    readonly number: number
    readonly again: number
  }) => readonly [number, number]
  readonly observer?: ReplyObserver | undefined
}

export interface ReplyObserver {
  /** Called for each reply before it is sampled; may refuse, by throwing. What it returns comes with the reply. */
  begin(call: Call): number
  said(reply: SaidReply, call: Call, place: number, turn: Turn): void
  /** A call does not fit the model. */
  overflow(turn: Turn): void
}

/** One reply. */
export interface SaidReply
  extends KnownReply,
    Pick<ParsedReply, "completion" | "finishReason" | "reasoningTokens" | "broken"> {
  readonly logProbs: Float32Array
  readonly constraint: Constraint | undefined
  /** The reply that it goes on from, token for token. */
  readonly follows: KnownReply | undefined
  /** Whether its call goes on from an earlier one in words, but not in tokens. */
  readonly unmerged: boolean
  /** Of several replies to one call, and of equal calls, which it is. */
  readonly number: number
  readonly again: number
}

/** Told of the parts of choice `index` as they become known, and of the reply's id. */
export type Listener = (index: number, piece: ReplyDelta, reply: string) => void

/** What the policy says to calls: prompts, sampling, and replies read from tokens. */
export class ReplyGenerator {
  /** Where replies are recorded, each once. Without a record, who asks anew is answered anew. */
  readonly attempts: Attempts | undefined
  readonly #setup: ReplyGeneratorSetup
  readonly #format: ToolFormat
  readonly #constraints: Constraints
  readonly #order: CallOrder | undefined

  constructor(setup: ReplyGeneratorSetup) {
    this.#setup = setup
    this.attempts = setup.observer && new Attempts()
    this.#order = setup.observer && new CallOrder()
    this.#format = toolFormat(setup.codec.toolTemplate ?? setup.codec.chatTemplate)
    this.#constraints = setup.constraints ?? new Constraints(this.#format, setup.codec)
  }

  /** Most tokens of a prompt and its reply. */
  get maxPositions(): number {
    return this.#setup.maxPositions ?? this.#setup.policy.maxPositions
  }

  /** A request arrives, whose call is read later; undefined where no order is kept. Ends with its reply, or is to be left. */
  arrive(): Arrival | undefined {
    return this.#order?.arrive()
  }

  /** Waits until the call of a request whose bytes are there may be read. */
  async toRead(arrival: Arrival | undefined): Promise<void> {
    if (arrival) await this.#order!.toRead(arrival)
  }

  /** A request arrived that has no call. */
  leave(arrival: Arrival | undefined): void {
    if (arrival) this.#order!.leave(arrival)
  }

  async reply(
    call: Call,
    signal: AbortSignal,
    listener?: Listener,
    attempt = new Attempt(),
    arrival = this.arrive(),
  ): Promise<readonly SaidReply[]> {
    const { transcript, temperature } = this.#setup
    let turn: Turn | undefined
    try {
      if (temperature.fixed && call.temperature !== undefined && call.temperature !== temperature.value)
        throw badField("temperature", `is ${temperature.value} here, as the run has it: leave it out`)
      const continued = await new Pace(signal).through(transcript.follow(call))
      const came = attempt.came(() => ({
        turn:
          arrival &&
          this.#order!.come(
            arrival,
            continued.replies.flatMap((reply) => reply?.id ?? []),
          ),
        again: transcript.count(continued.history),
      }))
      turn = came.turn
      if (arrival && turn && turn !== arrival.turn) this.#order!.return(arrival, turn)
      return await this.#replies(call, continued, came, attempt, signal, listener)
    } finally {
      if (arrival) this.#order!.leave(arrival, turn)
    }
  }

  async #replies(
    call: Call,
    continued: Continued,
    { turn, again }: Came,
    attempt: Attempt,
    signal: AbortSignal,
    listener: Listener | undefined,
  ): Promise<readonly SaidReply[]> {
    const { codec, transcript, temperature, maxCompletionTokens, observer } = this.#setup
    const { maxPositions } = this
    const { history } = continued
    const noRoom = (length: string) => {
      observer?.overflow(turn!)
      return new ApiError(
        400,
        `A prompt of ${length} tokens leaves no room for a reply in the model's ${maxPositions} positions; shorten the messages.`,
        { param: "messages", code: "context_length_exceeded" },
      )
    }
    const { tokens: prompt, text } = await promptTokens(codec, call, continued, maxPositions).catch(
      (error: unknown) => {
        throw error instanceof TooManyTokens ? noRoom(`more than ${maxPositions}`) : error
      },
    )
    const opening = this.#format.opening(text)
    const constraint = await this.#constraints.of(call, opening)
    const room = maxPositions - prompt.length
    const asked = call.maxTokens ?? maxCompletionTokens.value
    const maxTokens = Math.min(asked, room, maxCompletionTokens.fixed ? maxCompletionTokens.value : asked)
    if (maxTokens < 1) throw noRoom(String(prompt.length))
    const places = attempt.places(() => Array.from({ length: call.count }, () => observer?.begin(call) ?? 0))
    const request = {
      prompt,
      maxTokens,
      temperature: call.temperature ?? temperature.value,
      stopTokens: codec.eosTokens,
      ...(call.client !== undefined && { client: call.client }),
      ...(constraint && { constraint }),
      ...(call.topLogProbs > 0 && { topTokens: call.topLogProbs }),
      signal,
    }
    const one = async (number: number): Promise<SaidReply> => {
      const told = listener && ((piece: ReplyDelta, id: string) => listener(number, piece, id))
      const { reply, earlier } = await attempt.reply(number, async () => {
        const key = this.#setup.key({ call, history, number, again: call.seed === undefined ? again : 0 })
        const id = replyId(key, history, number, again)
        const heard = await this.#sample({ ...request, key }, call, opening, id, told)
        const said = this.#said(heard, { id, prompt, opening, constraint, number, again, continued })
        transcript.add(said)
        if (turn) this.#order!.answer(turn, id)
        observer?.said(said, call, places[number]!, turn!)
        return said
      })
      if (earlier && told) tellAgain(reply, told)
      return reply
    }
    return await Promise.all(Array.from({ length: call.count }, (_, number) => one(number)))
  }

  async #sample(
    request: SampleRequest,
    call: Call,
    opening: string,
    id: string,
    told: ((piece: ReplyDelta, reply: string) => void) | undefined,
  ): Promise<ParsedReply> {
    const { policy, codec } = this.#setup
    const hearing = new ReplyParser({
      decode: (tokens) => codec.decode(tokens, { skipSpecial: true }),
      reader: this.#format.reader({ tools: offers(call), opening }),
      stop: call.stop,
      id,
      listener: told && ((piece) => told(piece, id)),
    })
    // Only where somebody waits for it: an engine may tell of tokens at a price.
    const onTokens = told || call.stop.length > 0 ? (tokens: Int32Array) => hearing.hear(tokens) : undefined
    try {
      return hearing.end(await policy.sample({ ...request, ...(onTokens && { onTokens }) }, call))
    } catch (error) {
      if (GigpoError.is(error) && error.code === "CONSTRAINT_FAILED")
        throw await this.#constraints.failed(call, opening, error)
      throw error
    }
  }

  #said(
    { completion, content, reasoning, reasoningTokens, toolCalls, finishReason, broken }: ParsedReply,
    about: Pick<SaidReply, "id" | "prompt" | "opening" | "constraint" | "number" | "again"> & {
      readonly continued: Continued
    },
  ): SaidReply {
    const { continued, ...known } = about
    const { tokens, logProbs } = completion
    return {
      ...known,
      ...{ tokens, logProbs, completion, content, reasoning, reasoningTokens, toolCalls, finishReason, broken },
      history: continued.history,
      words: continued.words,
      follows: continued.replies[continued.tip],
      unmerged: continued.wordsTip > continued.tip,
    }
  }
}

function offers({ tools, toolChoice }: Call): boolean {
  return tools.length > 0 && toolChoice !== "none"
}

/** Unlike that of any other reply of its transcript, and not to be guessed where the key is not. */
function replyId(...parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16)
}

/** As a listener would have been told of it in one piece each. */
function tellAgain(
  { id, reasoning, content, toolCalls }: SaidReply,
  told: (piece: ReplyDelta, reply: string) => void,
): void {
  if (reasoning !== "") told({ kind: "reasoning", text: reasoning }, id)
  if (content !== "") told({ kind: "content", text: content }, id)
  for (const call of toolCalls) told({ kind: "call", ...call }, id)
}
