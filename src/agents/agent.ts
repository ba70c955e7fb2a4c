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
 * Somebody's agent, as it is: it calls the model through a client of its choice and says at the end how it went. null says that the
 * episode cannot be scored; a throw costs it. It is called side by side with others, `groupSize` times a task.
 */
export type Agent<Task = unknown> = (task: Task, context: AgentContext) => Promise<AgentEnd | null>

/** Connection and random numbers of an agent for one episode. */
export interface AgentContext {
  /** What OpenAI-compatible clients are made with. `fetch` spares those in this process the socket. */
  readonly openai: { readonly baseURL: string; readonly apiKey: string; readonly fetch: typeof fetch }
  /** The name to ask for. */
  readonly model: string
  /** Aborted when the episode is no longer wanted. */
  readonly signal: AbortSignal
  /** Says in which state the next replies are given, until it is said anew. Default: the last result of a tool, or message of the user. */
  step(state: { readonly anchor: string }): void
  /** Adds to the reward of the last reply so far. */
  reward(value: number): void
  /** The task's number in its iteration, and the episode's in its group, from 0. */
  readonly index: number
  readonly member: number
  /** The episode's own random numbers: what is drawn from them is the same when it is played again. */
  readonly random: Random
  /**
   * Key of `POST {baseURL}/gigpo/reward` and `/gigpo/step`, for agents that start a program which makes them. `openai.apiKey` is refused
   * there, so that no tool that finds the model's key can change the reward.
   */
  readonly controlKey: string
  /**
   * What programs have said of the end by `POST {baseURL}/gigpo/reward` with `controlKey`, whose reward is counted already; null where
   * they said that it cannot be scored, undefined where they said nothing.
   */
  posted(): AgentEnd | null | undefined
}

export interface AgentOptions {
  /** What is compared of the last tool's result or user's message, where the agent does not say in which state it is. Default: all of it. */
  readonly normalize?: ((text: string) => string) | undefined
}

/**
 * Reply of a perfect model to these messages: `{ content, tool_calls }` as OpenAI's API has it, or text in the form in which the model
 * writes. The expert speaks in the model's place, to the agent as it is; it may call the tools that the agent's request offers.
 */
export type AgentExpert<Task = unknown> = (
  task: Task,
  messages: readonly CallMessage[],
) => ExpertReply | Promise<ExpertReply>

export const agentModel = "policy"

/** Lets an agent play episodes: every call that it makes through the gateway is a step. */
export function agentLoop<Task>(
  agent: Agent<Task>,
  gateway: Gateway,
  { normalize = (text) => text, expert }: AgentOptions & { readonly expert?: AgentExpert<Task> | undefined } = {},
): AgentLoop<Task> {
  // An episode asks for the tools that those before it asked for: what was compiled for these serves it, too.
  const compiled = new WeakMap<ReplyCodec, Constraints>()
  return async (context) => {
    const codec = speakable(context.tokenizer)
    const constraints =
      compiled.get(codec) ?? new Constraints(toolFormat(codec.toolTemplate ?? codec.chatTemplate), codec)
    compiled.set(codec, constraints)
    const recorder = new Recorder(context, normalize)
    /** What the expert did wrong, whatever the agent made of it. */
    let fault: unknown
    const voice = new ReplyGenerator({
      policy: expert ? scripted(expert, context, codec, (error) => (fault ??= error)) : episodeShare(context.policy),
      codec,
      constraints,
      transcript: new Transcript(),
      temperature: { value: context.temperature, fixed: true },
      maxCompletionTokens: { value: context.maxCompletionTokens, fixed: true },
      maxPositions: context.maxPositions,
      // By what is said and not by when it is asked for: calls side by side may come in any order.
      key: ({ call: { seed = 0 }, history, number, again }) =>
        context.random.fork("call", history, number, again, seed).key,
      observer: recorder,
    })
    let posted: AgentEnd | null | undefined
    const episode: ToldEpisode = {
      step: (state) => recorder.stand(state),
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
      throw fault ?? recorder.over ?? error
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
    const said = visible(codec.decode(tokens, { skipSpecial: true }).slice(0, 200))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The expert said "${said}", which the tools or the format of the call do not allow; have it say what they do.`,
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
  /** Why the episode had to end, which is not the agent's fault. */
  over: EndOfEpisode | undefined
  /** The call that did not fit. */
  #overflown: Turn | undefined
  readonly #context: Recording
  readonly #normalize: (text: string) => string
  readonly #rewards: number[] = []
  /** In which state the replies at these places are given. */
  readonly #states = new Map<number, string>()
  /** The places of replies. */
  readonly #places = new Map<string, number>()
  #anchor: string | undefined
  #last: { readonly place: number; readonly order: string } | undefined

  constructor(context: Recording, normalize: (text: string) => string) {
    this.#context = context
    this.#normalize = normalize
  }

  stand(state: { readonly anchor: string }): void {
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
      if (error instanceof EndOfEpisode) this.over = error
      throw error
    }
  }

  said: ReplyObserver["said"] = (reply, call, place, turn) => {
    if (this.#overflown && !turn.beside.has(this.#overflown)) this.#overcome()
    // Calls that came one after the other stand so; those that came side by side, by what they say: who was quicker is chance.
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
    this.over ??= new EndOfEpisode("overflow", "A call of the agent does not fit the model's positions.")
  }

  /** It went on with a shorter call: whatever ends it now is another matter. */
  #overcome(): void {
    this.#overflown = undefined
    if (this.over?.outcome === "overflow") this.over = undefined
  }

  reward(value: number): void {
    if (!Number.isFinite(value)) throw wrong(`reward() got ${inspect(value)}; give a finite number`)
    if (this.#last === undefined) throw wrong("reward() was called before the model said anything")
    const { place } = this.#last
    this.#rewards[place] = (this.#rewards[place] ?? 0) + value
    this.#context.reward(place, this.#rewards[place]!)
  }

  end(given: AgentEnd | null): EpisodeEnd | null {
    const end = readEnd(given)
    if (end === null) return null
    if (this.#last === undefined)
      throw wrong("it ended with a reward, but its model said nothing: it was not called, or every call was refused")
    const { reward, success, metrics } = end
    return { reward, metrics: { ...metrics, ...(success !== undefined && { success: success ? 1 : 0 }) } }
  }
}

/** So that texts stand in the order of the numbers. */
function padded(number: number): string {
  return String(number).padStart(10, "0")
}

function speakable(codec: ChatCodec): ReplyCodec {
  const { renderChat } = codec as Partial<ReplyCodec>
  if (typeof renderChat === "function") return codec as unknown as ReplyCodec
  throw new GigpoError(
    "BAD_ARGUMENT",
    "Agents need a tokenizer with renderChat() and chatTemplate, as Tokenizer has them.",
  )
}

function wrong(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `The agent broke its contract: ${what}.`)
}
