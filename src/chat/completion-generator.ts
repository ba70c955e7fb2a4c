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
import { CompletionParser, type ParsedCompletion } from "./completion-parser.ts"
import { Constraints } from "./constraints.ts"
import type { CompletionDelta } from "./dialect.ts"
import { separateTurns } from "./merged-turns.ts"
import { prepare } from "./preparing.ts"
import { type PromptCodec, promptTokens } from "./prompt.ts"
import { withThinking } from "./thinking.ts"
import { readerOf, type ToolFormat, toolFormat } from "./tools/format.ts"
import type { Continued, KnownCompletion, Transcript } from "./transcript.ts"

/** Part of a tokenizer that the endpoint needs. */
export interface CompletionCodec extends PromptCodec {
  decode(tokens: Int32Array, options: { readonly skipSpecial: boolean }): string
  readonly chatTemplate: string | undefined
  /** Template for chats with tools. Default: the chat template. */
  readonly toolTemplate?: string | undefined
  /** Vocabulary for constrained decoding; absent if unknown, which disables constraints. */
  vocabulary?(): Vocabulary
}

export interface CompletionGeneratorSetup {
  /** Sampler of completions. Stand-ins for a model, such as experts, also get the call. */
  readonly policy: Pick<Sampler, "maxPositions"> & {
    sample(request: SampleRequest, call: Call): Promise<Completion>
  }
  readonly codec: CompletionCodec
  readonly transcript: Transcript
  /** Cache shared by generators with this codec. Default: a new one. */
  readonly constraints?: Constraints | undefined
  /** Temperature of calls without one; with `fixed`, calls may not choose another. */
  readonly temperature: { readonly value: number; readonly fixed: boolean }
  /**
   * Maximum tokens of a completion for calls without a limit; with `fixed`, calls may only lower it. The model's
   * positions limit both.
   */
  readonly maxCompletionTokens: { readonly value: number; readonly fixed: boolean }
  /** Maximum tokens of prompt and completion. Default: those of the policy. */
  readonly maxPositions?: number | undefined
  /**
   * Key of the random numbers of a completion, which also determines its id. `history` identifies the messages,
   * `number` the completion within a call, and `again` counts calls with the same history. For a call with a seed
   * `again` is 0, so that equal calls get equal responses.
   */
  readonly key: (place: {
    readonly call: Call
    readonly history: string
    readonly number: number
    readonly again: number
  }) => readonly [number, number]
  readonly observer?: CompletionObserver | undefined
}

export interface CompletionObserver {
  /** Called for each completion before it is sampled. The return value is passed to `record`. May throw to reject. */
  begin(call: Call): number
  record(completion: GeneratedCompletion, call: Call, place: number, turn: Turn): void
  /** Called if a call does not fit the model. */
  overflow(turn: Turn): void
}

/** Sampled completion with its parsed content. */
export interface GeneratedCompletion
  extends KnownCompletion,
    Pick<ParsedCompletion, "completion" | "finishReason" | "stop" | "reasoningTokens" | "broken"> {
  readonly logProbs: Float32Array
  /** Images of the prompt, as inputs of the model. Absent if there are none. */
  readonly attachments?: readonly unknown[]
  readonly constraint: Constraint | undefined
  /** Completion that this one extends token by token. */
  readonly follows: KnownCompletion | undefined
  /** Whether the call extends an earlier one in words but not in tokens. */
  readonly retokenized: boolean
  /** Index among the completions of one call, and number of earlier calls with the same history. */
  readonly number: number
  readonly again: number
}

/** Receives the parts of choice `index` as they are sampled, with the completion's id. */
export type Listener = (index: number, piece: CompletionDelta, id: string) => void

/** Generator of completions for API calls: renders prompts, samples, and parses completions. */
export class CompletionGenerator {
  /**
   * Record of attempts, so that each completion is recorded once. Without an observer, a repeated request is sampled
   * again.
   */
  readonly attempts: Attempts | undefined
  readonly #setup: CompletionGeneratorSetup
  readonly #format: ToolFormat
  readonly #constraints: Constraints
  readonly #order: CallOrder | undefined

  constructor(setup: CompletionGeneratorSetup) {
    this.#setup = setup
    this.attempts = setup.observer && new Attempts()
    this.#order = setup.observer && new CallOrder()
    this.#format = toolFormat(setup.codec.toolTemplate ?? setup.codec.chatTemplate)
    this.#constraints = setup.constraints ?? new Constraints(this.#format, setup.codec)
  }

  /** Maximum tokens of prompt and completion. */
  get maxPositions(): number {
    return this.#setup.maxPositions ?? this.#setup.policy.maxPositions
  }

  /** What the chat template knows, and the template itself. */
  get abilities(): { readonly tools: boolean; readonly thinks: boolean; readonly template: string } {
    const { chatTemplate: template = "", toolTemplate = template } = this.#setup.codec
    return { tools: /\btools\b/.test(toolTemplate), thinks: template.includes("<think>"), template }
  }

  /** Registers a request whose call is read later; undefined if no order is recorded. Ends with `reply` or `leave`. */
  arrive(): Arrival | undefined {
    return this.#order?.arrive()
  }

  /** Waits until the call of a complete request may be read. */
  async toRead(arrival: Arrival | undefined): Promise<void> {
    if (arrival) await this.#order!.toRead(arrival)
  }

  /** Ends an arrival without a call. */
  leave(arrival: Arrival | undefined): void {
    if (arrival) this.#order!.leave(arrival)
  }

  async complete(
    requested: Call,
    signal: AbortSignal,
    listener?: Listener,
    attempt = new Attempt(),
    arrival = this.arrive(),
  ): Promise<readonly GeneratedCompletion[]> {
    const { transcript, temperature } = this.#setup
    let turn: Turn | undefined
    try {
      const call = this.#resolved(requested)
      if (temperature.fixed && call.temperature !== undefined && call.temperature !== temperature.value)
        throw badField(
          "temperature",
          `is fixed to ${temperature.value} by the run: leave it out, or send ${temperature.value}`,
        )
      const continued = await prepare(call.client, call.bytes ?? 0, () =>
        new Pace(signal, call.client).through(transcript.follow(call)),
      )
      const came = attempt.came(() => ({
        turn:
          arrival &&
          this.#order!.come(
            arrival,
            continued.completions.flatMap((completion) => completion?.id ?? []),
          ),
        again: transcript.count(continued.history),
      }))
      turn = came.turn
      if (arrival && turn && turn !== arrival.turn) this.#order!.return(arrival, turn)
      return await this.#completions(call, continued, came, attempt, signal, listener)
    } finally {
      if (arrival) this.#order!.leave(arrival, turn)
    }
  }

  /**
   * Number of tokens of a call's prompt.
   *
   * @throws ApiError if the prompt does not fit the model's positions
   */
  async countPrompt(requested: Call, signal: AbortSignal): Promise<number> {
    const call = this.#resolved(requested)
    const continued = await new Pace(signal, call.client).through(this.#setup.transcript.follow(call))
    const { tokens } = await promptTokens(this.#setup.codec, call, continued, this.maxPositions).catch(
      (error: unknown) => {
        throw error instanceof TooManyTokens ? this.#noRoom(`more than ${this.maxPositions}`) : error
      },
    )
    return tokens.length
  }

  /** Call with what depends on the model and on earlier completions resolved. */
  #resolved(requested: Call): Call {
    const { codec, transcript } = this.#setup
    const call = withThinking(codec, requested)
    return { ...call, messages: separateTurns(call.messages, (id) => transcript.ofCall(id)) }
  }

  #noRoom(length: string): ApiError {
    return new ApiError(
      400,
      `A prompt of ${length} tokens leaves no room for a completion in the model's ${this.maxPositions} positions; shorten the messages.`,
      { param: "messages", code: "context_length_exceeded" },
    )
  }

  async #completions(
    call: Call,
    continued: Continued,
    { turn, again }: Came,
    attempt: Attempt,
    signal: AbortSignal,
    listener: Listener | undefined,
  ): Promise<readonly GeneratedCompletion[]> {
    const { codec, transcript, temperature, maxCompletionTokens, observer } = this.#setup
    const { maxPositions } = this
    const { history } = continued
    const noRoom = (length: string) => {
      observer?.overflow(turn!)
      return this.#noRoom(length)
    }
    const {
      tokens: prompt,
      text,
      attachments,
    } = await prepare(call.client, call.bytes ?? 0, () => promptTokens(codec, call, continued, maxPositions)).catch(
      (error: unknown) => {
        throw error instanceof TooManyTokens ? noRoom(`more than ${maxPositions}`) : error
      },
    )
    const opening = this.#format.opening(text)
    const constraint = await this.#constraints.of(call, opening)
    const room = maxPositions - prompt.length
    const limit = call.maxTokens ?? maxCompletionTokens.value
    const maxTokens = Math.min(limit, room, maxCompletionTokens.fixed ? maxCompletionTokens.value : limit)
    if (maxTokens < 1) throw noRoom(String(prompt.length))
    const places = attempt.places(() => Array.from({ length: call.count }, () => observer?.begin(call) ?? 0))
    const came = attachments && { attachments }
    const request = {
      ...{ prompt, ...came },
      maxTokens,
      temperature: call.temperature ?? temperature.value,
      stopTokens: codec.eosTokens,
      ...(call.client !== undefined && { client: call.client }),
      ...(constraint && { constraint }),
      ...(call.topLogProbs > 0 && { topTokens: call.topLogProbs }),
      signal,
    }
    const pace = new Pace(signal, call.client)
    const one = async (number: number): Promise<GeneratedCompletion> => {
      const onDelta = listener && ((piece: CompletionDelta, id: string) => listener(number, piece, id))
      const { completion, earlier } = await attempt.complete(number, async () => {
        if (pace.due()) await pace.rest()
        const key = this.#setup.key({ call, history, number, again: call.seed === undefined ? again : 0 })
        const id = completionId(key, history, number, again)
        const sampled = await this.#sample({ ...request, key }, call, opening, id, onDelta)
        const generated = this.#generated(sampled, {
          id,
          prompt,
          ...came,
          opening,
          constraint,
          number,
          again,
          continued,
        })
        transcript.add(generated)
        if (turn) this.#order!.answer(turn, id)
        observer?.record(generated, call, places[number]!, turn!)
        return generated
      })
      if (earlier && onDelta) tellAgain(completion, onDelta)
      return completion
    }
    return await Promise.all(Array.from({ length: call.count }, (_, number) => one(number)))
  }

  async #sample(
    request: SampleRequest,
    call: Call,
    opening: string,
    id: string,
    onDelta: ((piece: CompletionDelta, id: string) => void) | undefined,
  ): Promise<ParsedCompletion> {
    const { policy, codec } = this.#setup
    const hearing = new CompletionParser({
      decode: (tokens) => codec.decode(tokens, { skipSpecial: true }),
      reader: readerOf(
        this.#format,
        call,
        opening,
        onDelta !== undefined && request.constraint !== undefined && call.stop.length === 0,
      ),
      stop: call.stop,
      id,
      listener: onDelta && ((piece) => onDelta(piece, id)),
    })
    // Only if needed: reporting tokens may slow an engine down.
    const onTokens = onDelta || call.stop.length > 0 ? (tokens: Int32Array) => hearing.hear(tokens) : undefined
    try {
      const completion = await policy.sample({ ...request, ...(onTokens && { onTokens }) }, call)
      return await new Pace(undefined, call.client).through(hearing.end(completion))
    } catch (error) {
      if (GigpoError.is(error) && error.code === "CONSTRAINT_FAILED")
        throw await this.#constraints.failed(call, opening, error)
      throw error
    }
  }

  #generated(
    { completion, content, reasoning, reasoningTokens, toolCalls, finishReason, stop, broken }: ParsedCompletion,
    about: Pick<
      GeneratedCompletion,
      "id" | "prompt" | "attachments" | "opening" | "constraint" | "number" | "again"
    > & {
      readonly continued: Continued
    },
  ): GeneratedCompletion {
    const { continued, ...known } = about
    const { tokens, logProbs } = completion
    return {
      ...known,
      ...{ tokens, logProbs, completion, content, reasoning, reasoningTokens, toolCalls, finishReason, stop, broken },
      history: continued.history,
      words: continued.words,
      follows: continued.completions[continued.tip],
      retokenized: continued.wordsTip > continued.tip,
    }
  }
}

/** Id that is unique in its transcript and unguessable without the key. */
function completionId(...parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 16)
}

/** Repeats a completion to a listener, one piece per part. */
function tellAgain(
  { id, reasoning, content, toolCalls }: GeneratedCompletion,
  onDelta: (piece: CompletionDelta, id: string) => void,
): void {
  if (reasoning !== "") onDelta({ kind: "reasoning", text: reasoning }, id)
  if (content !== "") onDelta({ kind: "content", text: content }, id)
  for (const call of toolCalls) onDelta({ kind: "call", ...call }, id)
}
