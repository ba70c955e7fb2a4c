import { inspect } from "node:util"
import { Constraint } from "../engine/native/constraint.ts"
import { GigpoError } from "../errors.ts"
import { isObject } from "../options/read.ts"
import type { Random } from "../random.ts"
import { EndOfEpisode } from "../rollout/end-of-episode.ts"
import type { EpisodeEnd, Play, PlayContext } from "../rollout/play.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { visible } from "../visible.ts"
import type { Call, CallMessage } from "./call.ts"
import type { Turn } from "./call-order.ts"
import { Constraints } from "./constraints.ts"
import { tokenText } from "./dialect.ts"
import type { Gateway } from "./gateway.ts"
import { lastHeard } from "./heard.ts"
import { readEnd, type ToldEpisode } from "./told.ts"
import { toolFormat } from "./tools/format.ts"
import { Transcript } from "./transcript.ts"
import { Voice, type VoiceCodec, type VoiceObserver, type VoiceSetup } from "./voice.ts"

/**
 * Somebody's agent, as it is: it calls the model through a client of its choice and says at the end how it went. null says that the
 * episode cannot be scored; a throw costs it. It is called side by side with others, `groupSize` times a task.
 */
export type Agent<Task = unknown> = (task: Task, context: AgentContext) => Promise<AgentEnd | null>

export interface AgentEnd {
  readonly reward: number
  readonly success?: boolean | undefined
  /** Told as `episode/<name>`; those that are undefined are not. */
  readonly metrics?: Readonly<Record<string, number | undefined>> | undefined
}

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
   * What programs have said of the end by `POST {baseURL}/gigpo/reward` with the episode's key, whose reward is counted already; null
   * where they said that it cannot be scored, undefined where they said nothing.
   */
  posted(): AgentEnd | null | undefined
}

export interface AgentOptions {
  /** What is compared of the last tool's result or user's message, where the agent does not say in which state it is. Default: all of it. */
  readonly normalize?: ((text: string) => string) | undefined
}

/**
 * What a perfect model would reply to these messages, in the form in which the model writes: calls of tools as its chat template has
 * them. It speaks in the model's place, to the agent as it is.
 */
export type AgentExpert<Task = unknown> = (task: Task, messages: readonly CallMessage[]) => string

export const agentModel = "policy"

/** Lets an agent play episodes: every call that it makes through the gateway is a step. */
export function agentPlay<Task>(
  agent: Agent<Task>,
  gateway: Gateway,
  { normalize = (text) => text, expert }: AgentOptions & { readonly expert?: AgentExpert<Task> | undefined } = {},
): Play<Task> {
  // An episode asks for the tools that those before it asked for: what was compiled for these serves it, too.
  const compiled = new WeakMap<VoiceCodec, Constraints>()
  return async (context) => {
    const codec = speakable(context.tokenizer)
    const constraints = compiled.get(codec) ?? new Constraints(toolFormat(codec.chatTemplate), codec)
    compiled.set(codec, constraints)
    const recorder = new Recorder(context, normalize)
    /** What the expert did wrong, whatever the agent made of it. */
    let fault: unknown
    const voice = new Voice({
      policy: expert ? scripted(expert, context, codec, (error) => (fault ??= error)) : context.policy,
      codec,
      constraints,
      transcript: new Transcript(),
      temperature: { value: context.temperature, fixed: true },
      maxReplyTokens: context.maxReplyTokens,
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
    const speaker = { voice, models: [agentModel], textOf: tokenText(codec), signal: context.signal, episode }
    const { apiKey, close } = gateway.open(speaker)
    try {
      const { index, member, random, signal } = context
      const end = await agent(context.task, {
        ...{ index, member, signal, random: random.fork("own"), posted: () => posted },
        openai: { baseURL: gateway.baseURL, apiKey, fetch: gateway.fetch },
        model: agentModel,
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
  { task, maxPositions }: PlayContext<Task>,
  codec: VoiceCodec,
  onFault: (error: unknown) => void,
): VoiceSetup["policy"] {
  const say = (messages: readonly CallMessage[], constraint: unknown): Int32Array => {
    const reply = expert(task, messages)
    const tokens = Int32Array.from([...codec.encode(reply), codec.eosTokens[0]!])
    if (!(constraint instanceof Constraint) || constraint.takes(tokens)) return tokens
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The expert said "${visible(reply.slice(0, 200))}", which the tools or the format of the call do not allow; have it say what they do.`,
    )
  }
  return {
    maxPositions,
    async sample({ constraint }, { messages }) {
      try {
        const tokens = say(messages, constraint)
        return { tokens, logProbs: new Float32Array(tokens.length), finishReason: "stop" }
      } catch (error) {
        onFault(error)
        throw error
      }
    },
  }
}

type Recording = Pick<PlayContext, "reserve" | "record" | "reward">

class Recorder implements VoiceObserver {
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

  said: VoiceObserver["said"] = (reply, call, place, turn) => {
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

function speakable(codec: ChatCodec): VoiceCodec {
  const { renderChat } = codec as Partial<VoiceCodec>
  if (typeof renderChat === "function") return codec as unknown as VoiceCodec
  throw new GigpoError(
    "BAD_ARGUMENT",
    "Agents need a tokenizer with renderChat() and chatTemplate, as Tokenizer has them.",
  )
}

function wrong(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `The agent broke its contract: ${what}.`)
}
