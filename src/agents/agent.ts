import { inspect } from "node:util"
import type { Call, CallMessage } from "../chat/call.ts"
import type { Turn } from "../chat/call-order.ts"
import { Constraints } from "../chat/constraints.ts"
import { tokenText } from "../chat/dialect.ts"
import { lastHeard } from "../chat/heard.ts"
import {
  type ReplyCodec,
  ReplyGenerator,
  type ReplyGeneratorSetup,
  type ReplyObserver,
} from "../chat/reply-generator.ts"
import { toolFormat } from "../chat/tools/format.ts"
import { Transcript } from "../chat/transcript.ts"
import { type AgentEnd, readEnd, type ToldEpisode } from "../endpoint/posted.ts"
import { Constraint } from "../engine/native/constraint.ts"
import { isObject } from "../options/read.ts"
import { EndOfEpisode } from "../rollout/end-of-episode.ts"
import type { AgentLoop, AgentLoopContext, EpisodeEnd } from "../rollout/play.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import type { Random } from "../util/random.ts"
import { visible } from "../util/visible.ts"
import { episodeShare } from "./episode-share.ts"
import { type ExpertReply, replyTokens } from "./expert-reply.ts"
import type { Gateway } from "./gateway.ts"

/**
 * Agent program as a function: solves one task by calling the model through any client, and returns the result of the
 * episode. Return null if the episode cannot be scored; an exception fails it. Called concurrently, `groupSize` times
 * per task.
 */
export type Agent<Task = unknown> = (task: Task, context: AgentContext) => Promise<AgentEnd | null>

/** Connection and random numbers of an agent for one episode. */
export interface AgentContext {
  /** Options for OpenAI-compatible clients. `fetch` avoids the socket for clients in this process. */
  readonly openai: { readonly baseURL: string; readonly apiKey: string; readonly fetch: typeof fetch }
  /** Name of the model in requests. */
  readonly model: string
  /** Aborted when the episode is no longer needed, e.g. after a timeout. */
  readonly signal: AbortSignal
  /**
   * Sets the anchor state of the following completions, until the next call. Default: the last tool result or user
   * message.
   */
  step(state: { readonly anchor: string }): void
  /** Adds to the reward of the last completion so far. */
  reward(value: number): void
  /** Index of the task in its iteration and of the episode in its group, from 0. */
  readonly index: number
  readonly member: number
  /** Random numbers of the episode; the same when it is repeated. */
  readonly random: Random
  /**
   * Key of `POST {baseURL}/gigpo/reward` and `/gigpo/step`, for agents that start a program which posts there.
   * `openai.apiKey` is refused there, so that a tool with the model key cannot change the reward.
   */
  readonly controlKey: string
  /**
   * Result that programs posted to `{baseURL}/gigpo/reward` with `controlKey`; its reward is already counted. Null if
   * they declared that the episode cannot be scored, undefined if nothing was posted.
   */
  posted(): AgentEnd | null | undefined
}

export interface AgentOptions {
  /** Maps the last tool result or user message to the default anchor state. Default: unchanged. */
  readonly normalize?: ((text: string) => string) | undefined
}

/**
 * Returns the completion of a perfect model for these messages: `{ content, tool_calls }` as in OpenAI's API, or text
 * in the format of the model. The expert replaces the model of an unchanged agent; it may call the tools that the
 * agent's request offers.
 */
export type AgentExpert<Task = unknown> = (
  task: Task,
  messages: readonly CallMessage[],
) => ExpertReply | Promise<ExpertReply>

export const agentModel = "policy"

/** Loop that lets an agent play episodes: every call through the gateway is a step. */
export function agentLoop<Task>(
  agent: Agent<Task>,
  gateway: Gateway,
  { normalize = (text) => text, expert }: AgentOptions & { readonly expert?: AgentExpert<Task> | undefined } = {},
): AgentLoop<Task> {
  // Episodes use the same tools, so that compiled constraints are shared.
  const compiled = new WeakMap<ReplyCodec, Constraints>()
  return async (context) => {
    const codec = replyCodec(context.tokenizer)
    const constraints =
      compiled.get(codec) ?? new Constraints(toolFormat(codec.toolTemplate ?? codec.chatTemplate), codec)
    compiled.set(codec, constraints)
    const recorder = new Recorder(context, normalize)
    /** First fault of the expert, however the agent handled it. */
    let fault: unknown
    const voice = new ReplyGenerator({
      policy: expert ? scripted(expert, context, codec, (error) => (fault ??= error)) : episodeShare(context.policy),
      codec,
      constraints,
      transcript: new Transcript(),
      temperature: { value: context.temperature, fixed: true },
      maxCompletionTokens: { value: context.maxCompletionTokens, fixed: true },
      maxPositions: context.maxPositions,
      // By content and not by time: concurrent calls may arrive in any order.
      key: ({ call: { seed = 0 }, history, number, again }) =>
        context.random.fork("call", history, number, again, seed).key,
      observer: recorder,
    })
    let posted: AgentEnd | null | undefined
    const episode: ToldEpisode = {
      step: (state) => recorder.setAnchor(state),
      end(end) {
        if (end) recorder.reward(end.reward)
        const metrics = { ...posted?.metrics, ...end?.metrics }
        posted = end && posted !== null ? { ...posted, ...end, metrics, reward: 0 } : null
      },
    }
    const speaker = { voice, models: [agentModel], textOf: tokenText(codec), signal: context.signal }
    const { apiKey, controlKey, close } = gateway.open(speaker, episode)
    try {
      const { index, member, random, signal } = context
      const end = await agent(context.task, {
        ...{ index, member, signal, random: random.fork("own"), posted: () => posted },
        openai: { baseURL: gateway.baseURL, apiKey, fetch: gateway.fetch },
        ...{ model: agentModel, controlKey },
        step: episode.step,
        reward: (value) => recorder.reward(value),
      })
      if (fault) throw fault
      const ended = recorder.end(end)
      return ended && { ...ended, metrics: { ...ended.metrics, undelivered: voice.attempts!.undelivered } }
    } catch (error) {
      throw fault ?? recorder.endOfEpisode ?? error
    } finally {
      close()
    }
  }
}

function scripted<Task>(
  expert: AgentExpert<Task>,
  { task, maxPositions }: AgentLoopContext<Task>,
  codec: ReplyCodec,
  onFault: (error: unknown) => void,
): ReplyGeneratorSetup["policy"] {
  const say = async (call: Call, constraint: unknown): Promise<Int32Array> => {
    const tokens = await replyTokens(codec, call, await expert(task, call.messages))
    if (!(constraint instanceof Constraint) || constraint.takes(tokens)) return tokens
    const completion = visible(codec.decode(tokens, { skipSpecial: true }).slice(0, 200))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The expert's completion "${completion}" violates the tools or the format of the call; correct the expert.`,
    )
  }
  return {
    maxPositions,
    async sample({ constraint }, call) {
      try {
        const tokens = await say(call, constraint)
        return { tokens, logProbs: new Float32Array(tokens.length), finishReason: "stop" }
      } catch (error) {
        onFault(error)
        throw error
      }
    },
  }
}

type Recording = Pick<AgentLoopContext, "reserve" | "record" | "reward">

class Recorder implements ReplyObserver {
  /** Reason why the episode ended that is not an error of the agent, such as a context overflow. */
  endOfEpisode: EndOfEpisode | undefined
  /** Turn of the call whose prompt and completion exceed the context. */
  #overflown: Turn | undefined
  readonly #context: Recording
  readonly #normalize: (text: string) => string
  readonly #rewards: number[] = []
  /** Anchor states of the completions, by place. */
  readonly #states = new Map<number, string>()
  /** Places of the completions. */
  readonly #places = new Map<string, number>()
  #anchor: string | undefined
  #last: { readonly place: number; readonly order: string } | undefined

  constructor(context: Recording, normalize: (text: string) => string) {
    this.#context = context
    this.#normalize = normalize
  }

  setAnchor(state: { readonly anchor: string }): void {
    if (!isObject(state) || typeof state.anchor !== "string")
      throw wrong(`step() got ${inspect(state, { depth: 1 })}; give it { anchor }, a string`)
    this.#anchor = state.anchor
  }

  begin(call: Call): number {
    try {
      const place = this.#context.reserve()
      this.#states.set(place, this.#anchor ?? this.#normalize(lastHeard(call.messages)))
      return place
    } catch (error) {
      if (error instanceof EndOfEpisode) this.endOfEpisode = error
      throw error
    }
  }

  said: ReplyObserver["said"] = (reply, call, place, turn) => {
    if (this.#overflown && !turn.beside.has(this.#overflown)) this.#overcome()
    // Successive calls are ordered by time; concurrent calls by content, since their timing is random.
    const order = [padded(turn.now), reply.history, padded(reply.again), padded(reply.number)].join(" ")
    this.#places.set(reply.id, place)
    const { follows, unmerged } = reply
    this.#context.record(
      {
        ...{ prompt: reply.prompt, reply: reply.tokens, logProbs: reply.logProbs },
        entropies: reply.completion.entropies,
        anchor: this.#states.get(place)!,
        observation: lastHeard(call.messages),
        action:
          reply.toolCalls.length > 0
            ? JSON.stringify(reply.toolCalls.map(({ name, arguments: given }) => [name, given]))
            : reply.content,
        valid: !reply.broken,
        finishReason: reply.completion.finishReason,
        ...{ order, follows: follows ? this.#places.get(follows.id)! : null },
        ...((follows || unmerged) && { unmerged }),
        ...(reply.constraint && { constraint: reply.constraint }),
      },
      place,
    )
    if (!this.#last || order > this.#last.order) this.#last = { place, order }
  }

  overflow(turn: Turn): void {
    this.#overflown = turn
    this.endOfEpisode ??= new EndOfEpisode("overflow", "A call of the agent exceeds the model's positions.")
  }

  /** Forgets an overflow after the agent continued with a shorter call: if the episode fails later, this was not the reason. */
  #overcome(): void {
    this.#overflown = undefined
    if (this.endOfEpisode?.outcome === "overflow") this.endOfEpisode = undefined
  }

  reward(value: number): void {
    if (!Number.isFinite(value)) throw wrong(`reward() got ${inspect(value)}; give a finite number`)
    if (this.#last === undefined) throw wrong("reward() was called before the first completion")
    const { place } = this.#last
    this.#rewards[place] = (this.#rewards[place] ?? 0) + value
    this.#context.reward(place, this.#rewards[place]!)
  }

  end(given: AgentEnd | null): EpisodeEnd | null {
    const end = readEnd(given)
    if (end === null) return null
    if (this.#last === undefined)
      throw wrong(
        "it ended with a reward but without a completion: it did not call the model, or every call was refused",
      )
    const { reward, success, metrics } = end
    return { reward, metrics: { ...metrics, ...(success !== undefined && { success: success ? 1 : 0 }) } }
  }
}

/** Number as text whose alphabetical order is the numerical order. */
function padded(number: number): string {
  return String(number).padStart(10, "0")
}

/** Tokenizer of the rollout as one that can render chats. */
function replyCodec(codec: ChatCodec): ReplyCodec {
  const { renderChat } = codec as Partial<ReplyCodec>
  if (typeof renderChat === "function") return codec as unknown as ReplyCodec
  throw new GigpoError("BAD_ARGUMENT", "Agents need a tokenizer with renderChat() and chatTemplate, such as Tokenizer.")
}

function wrong(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `The agent broke its contract: ${what}.`)
}
