import { setMaxListeners } from "node:events"
import type { Call, CallMessage } from "../chat/call.ts"
import {
  type CompletionCodec,
  CompletionGenerator,
  type CompletionGeneratorSetup,
} from "../chat/completion-generator.ts"
import { Constraints } from "../chat/constraints.ts"
import { tokenText } from "../chat/dialect.ts"
import { toolFormat } from "../chat/tools/format.ts"
import { Transcript } from "../chat/transcript.ts"
import type { CallObserver } from "../endpoint/endpoint.ts"
import type { AgentResult, EpisodeReports } from "../endpoint/posted.ts"
import { Constraint } from "../engine/native/constraint.ts"
import type { AgentLoop, AgentLoopContext } from "../rollout/play.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import { GigpoError } from "../util/errors.ts"
import { linkAbort } from "../util/linked-abort.ts"
import type { Random } from "../util/random.ts"
import { visible } from "../util/visible.ts"
import type { OnWarning } from "../util/warn.ts"
import { episodeShare } from "./episode-share.ts"
import { completionTokens, type ExpertCompletion } from "./expert-completion.ts"
import type { Gateway } from "./gateway.ts"
import { Recorder } from "./recorder.ts"
import { EpisodeCalls, Refusals } from "./refusals.ts"

/**
 * Agent program as a function: solves one task by calling the model through any client, and returns the result of the
 * episode. Return null if the episode cannot be scored; an exception fails it. Called concurrently, `groupSize` times
 * per task.
 */
export type Agent<Task = unknown> = (task: Task, context: AgentContext) => Promise<AgentResult | null>

/** Connection and random numbers of an agent for one episode. */
export interface AgentContext {
  /** Options for OpenAI-compatible clients: `baseURL`, `apiKey` (a key of the episode), and `fetch`, which avoids the socket for clients in this process. */
  readonly openai: { readonly baseURL: string; readonly apiKey: string; readonly fetch: typeof fetch }
  /** Options for clients of Anthropic's Messages API: `baseURL`, `apiKey` and `fetch`. */
  readonly anthropic: AgentContext["openai"]
  /** Name of the model in requests. */
  readonly model: string
  /**
   * Sampling temperature of the run: `rollout.temperature` in training, `evaluation.temperature` in evaluations. For
   * clients that always send one; any other is rejected.
   */
  readonly temperature: number
  /** Signal that is aborted when the episode is no longer needed, e.g. after a timeout. */
  readonly signal: AbortSignal
  /**
   * Sets the anchor state (`anchor`, a key of the state) of the following completions, until the next call. Default: the last tool result or user
   * message.
   */
  step(state: { readonly anchor: string }): void
  /** Adds to the reward of the last completion so far. */
  reward(value: number): void
  /** Index of the task in its iteration, from 0. */
  readonly index: number
  /** Index of the episode in its group, from 0. */
  readonly member: number
  /** Random numbers of the episode; the same when the episode is repeated. */
  readonly random: Random
  /**
   * Key of `POST {baseURL}/gigpo/reward` and `/gigpo/step`, for agents that start a program which posts there.
   * `openai.apiKey` is rejected there, so that a tool with the model key cannot change the reward.
   */
  readonly controlKey: string
  /**
   * Result that programs posted to `{baseURL}/gigpo/reward` with `controlKey`; its reward is already counted. Null if
   * they declared that the episode cannot be scored, undefined if nothing was posted.
   */
  postedResult(): AgentResult | null | undefined
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
) => ExpertCompletion | Promise<ExpertCompletion>

export const agentModel = "policy"

interface AgentLoopOptions<Task> extends AgentOptions {
  readonly expert?: AgentExpert<Task> | undefined
  /** Receives each distinct rejection of a call once. Default: a warning of Node.js. */
  readonly onWarning?: OnWarning | undefined
  /** Seconds without activity after which an episode fails if all of its calls were rejected. Default 30. */
  readonly patience?: number
}

/** Loop that lets an agent play episodes: every call through the gateway is a step. */
export function agentLoop<Task>(
  agent: Agent<Task>,
  gateway: Gateway,
  { normalize = (text) => text, expert, onWarning, patience }: AgentLoopOptions<Task> = {},
): AgentLoop<Task> {
  const refusals = new Refusals(onWarning, patience)
  // Episodes use the same tools, so that compiled constraints are shared.
  const compiled = new WeakMap<CompletionCodec, Constraints>()
  return async (context) => {
    const codec = completionCodecOf(context.tokenizer)
    const constraints =
      compiled.get(codec) ?? new Constraints(toolFormat(codec.toolTemplate ?? codec.chatTemplate), codec)
    compiled.set(codec, constraints)
    const recorder = new Recorder(context, normalize)
    /** First fault of the expert, however the agent handled it. */
    let fault: unknown
    const completionGenerator = new CompletionGenerator({
      policy: expert ? scripted(expert, context, codec, (error) => (fault ??= error)) : episodeShare(context.policy),
      codec,
      constraints,
      transcript: new Transcript(),
      temperature: { value: context.temperature, fixed: true },
      maxCompletionTokens: { value: context.maxCompletionTokens, fixed: true },
      maxPositions: context.maxPositions,
      // By content and not by time: concurrent calls may arrive in any order.
      key: ({ call: { seed = 0 }, history, number, again }) =>
        context.random.derive("call", history, number, again, seed).key,
      observer: recorder,
    })
    let posted: AgentResult | null | undefined
    const episode: EpisodeReports = {
      step: (state) => recorder.stand(state),
      end(end) {
        if (end) recorder.reward(end.reward)
        const metrics = { ...posted?.metrics, ...end?.metrics }
        posted = end && posted !== null ? { ...posted, ...end, metrics, reward: 0 } : null
      },
    }
    using calls = new EpisodeCalls(refusals)
    const speaker = {
      generator: completionGenerator,
      models: [agentModel],
      textOf: tokenText(codec),
      signal: context.signal,
    }
    const watched: CallObserver = {
      begin: () => calls.begin(),
      // An episode that ends by a limit is no fault of the call.
      end: (refusal) => calls.end(recorder.over && recorder.began ? undefined : refusal),
    }
    const { apiKey, controlKey, close } = gateway.open({ ...speaker, calls: watched }, episode)
    const over = new AbortController()
    setMaxListeners(0, over.signal) // clients such as OpenAI's add a listener per request and do not remove it
    const unlink = linkAbort(context.signal, over)
    try {
      const { index, member, random, temperature } = context
      const { signal } = over
      const playing = agent(context.task, {
        ...{ index, member, signal, random: random.derive("own"), postedResult: () => posted },
        openai: { baseURL: gateway.baseURL, apiKey, fetch: gateway.fetch },
        anthropic: { baseURL: gateway.url, apiKey, fetch: gateway.fetch },
        ...{ model: agentModel, temperature, controlKey },
        step: episode.step,
        reward: (value) => recorder.reward(value),
      })
      const end = await Promise.race([playing, calls.silence])
      if (fault) throw fault
      const ended = recorder.end(end, calls.refusal)
      const counts = { undelivered: completionGenerator.attempts!.undelivered, "rejected-calls": calls.rejected }
      return ended && { ...ended, metrics: { ...ended.metrics, ...counts } }
    } catch (error) {
      over.abort(error) // an agent that was given up may still run
      throw fault ?? recorder.over ?? error
    } finally {
      unlink()
      close()
    }
  }
}

function scripted<Task>(
  expert: AgentExpert<Task>,
  { task, maxPositions }: AgentLoopContext<Task>,
  codec: CompletionCodec,
  onFault: (error: unknown) => void,
): CompletionGeneratorSetup["policy"] {
  const say = async (call: Call, constraint: unknown): Promise<Int32Array> => {
    const tokens = await completionTokens(codec, call, await expert(task, call.messages))
    if (!(constraint instanceof Constraint) || constraint.accepts(tokens)) return tokens
    const excerpt = visible(codec.decode(tokens, { skipSpecial: true }).slice(0, 200))
    throw new GigpoError(
      "BAD_ARGUMENT",
      `The expert's completion "${excerpt}" violates the tools or the format of the call; correct the expert.`,
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

function completionCodecOf(codec: ChatCodec): CompletionCodec {
  const { renderChat } = codec as Partial<CompletionCodec>
  if (typeof renderChat === "function") return codec as unknown as CompletionCodec
  throw new GigpoError("BAD_ARGUMENT", "Agents need a tokenizer with renderChat() and chatTemplate, such as Tokenizer.")
}
