import { createHash } from "node:crypto"
import { inspect } from "node:util"
import { checkWhole } from "../engine/check-arguments.ts"
import { checkMessages, checkParsed, playing } from "../environment/contract.ts"
import { unknownKey } from "../options/unknown-key.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"
import type { AgentSetup } from "./agent.ts"
import { checkMeasured, checkSampled } from "./check-step.ts"
import { decodeCompletion, encodePrompt } from "./codec.ts"
import type { Deadline } from "./deadline.ts"
import { checkFits } from "./end-of-episode.ts"
import type { EpisodeStep } from "./episode.ts"
import { RolloutFault } from "./faults.ts"
import { guardPolicy, notAtOnce } from "./guard-policy.ts"
import type { AgentLoopContext, SampleOptions, StepInput } from "./play.ts"
import type { StepLog } from "./step-log.ts"

export const contract = playing("agentLoop")

const commonKeys = { conversation: true, agent: true, anchor: true, observation: true } as const
const sampleKeys: Record<keyof SampleOptions, true> = {
  ...commonKeys,
  maxTokens: true,
  stopTokens: true,
  parse: true,
}
const recordKeys: Record<keyof StepInput, true> = {
  ...commonKeys,
  prompt: true,
  completion: true,
  logProbs: true,
  entropies: true,
  text: true,
  action: true,
  valid: true,
  reward: true,
  metrics: true,
  finishReason: true,
  attachments: true,
  images: true,
  follows: true,
  retokenized: true,
  order: true,
  temperature: true,
  constraint: true,
}

/** What the context of an agent loop works on. */
interface ContextParts {
  readonly log: StepLog
  readonly deadline: Deadline
  /** Controller that ends the agent's calls. */
  readonly own: AbortController
  readonly onStep: ((step: EpisodeStep, index: number) => void) | undefined
}

interface OpenContext<Task> {
  readonly context: AgentLoopContext<Task>
  /** Completions that were requested; they never reject. */
  readonly pending: readonly Promise<unknown>[]
}

/** Recording of the steps of an episode. */
function stepRecorder<Task>(setup: AgentSetup<Task>, { log, deadline, onStep }: ContextParts) {
  const { policy, tokenizer, temperature, maxPositions } = setup
  const { vocabularySize } = policy
  return {
    /** Reserves the next step and starts the time limit of its turn. */
    reserve: (): number => {
      const place = log.reserve() // throws once the episode is over, when nothing must be timed any more
      deadline.set("turnTimeout", "agentLoop: a turn", setup.turnTimeout)
      return place
    },
    fill: (place: number, recorded: StepInput): void => {
      if (deadline.passed) throw deadline.passed // of an episode that is over already
      checkSampled(contract, recorded, { vocabularySize, maxPositions, temperature })
      const step = stepOf(recorded, tokenizer)
      log.fill(place, step, recorded)
      try {
        onStep?.(step, place)
      } catch (error) {
        throw new RolloutFault(error)
      }
    },
  }
}

/** Context of an agent loop for one episode: sampling and recording of steps. */
export function agentContext<Task>(setup: AgentSetup<Task>, parts: ContextParts): OpenContext<Task> {
  const { log, own } = parts
  const { random, tokenizer, temperature, maxCompletionTokens, maxPositions, task, index, member } = setup
  const policy = guardPolicy(setup.policy, own)
  const { vocabularySize } = policy
  const { reserve, fill } = stepRecorder(setup, parts)
  const pending: Promise<unknown>[] = []

  /** Errors that the agent receives. An error that the agent did not cause ends the rollout, even if the agent catches it. */
  const unwrapFault = (error: unknown): unknown => {
    if (!(error instanceof RolloutFault)) return error
    own.abort(error)
    return error.cause
  }

  const sample: AgentLoopContext["sample"] = async (messages, options = {}) => {
    const step = reserve() // before anything is waited for
    checkKeys("the options of sample()", options, sampleKeys)
    const { maxTokens = maxCompletionTokens, stopTokens = tokenizer.eosTokens, parse, ...rest } = options
    checkMessages(contract, messages)
    checkWhole(maxTokens, "maxTokens")
    const { tokens: prompt, attachments } = await encodePrompt(tokenizer, messages, vocabularySize)
    const came = attachments && { attachments }
    checkFits(prompt.length, maxTokens, maxPositions)
    const { key } = random.derive("reply", step)
    const request = { prompt, ...came, maxTokens, temperature, stopTokens, key }
    const { tokens, logProbs, entropies, finishReason } = await policy.sample(request)
    const text = decodeCompletion(tokenizer, tokens)
    const { action, valid } = parse ? checkParsed(contract, "parse()", parse(text)) : { action: text, valid: true }
    const last = messages.at(-1)!
    const observation = options.observation ?? last.content
    const images = last.images && { images: last.images }
    const completion = { completion: tokens, logProbs, entropies, text, action, valid, finishReason }
    fill(step, { ...rest, ...came, ...images, prompt, ...completion, observation })
    return { step, text, tokens, action, valid, finishReason }
  }

  const context: AgentLoopContext<Task> = {
    ...{ task, index, member, policy, tokenizer, maxPositions, temperature, maxCompletionTokens },
    random: random.derive("agent"),
    signal: own.signal,
    sample(messages, options) {
      const sampling = notAtOnce(
        sample(messages, options).catch((error) => {
          throw unwrapFault(error)
        }),
      )
      pending.push(sampling.catch(() => {})) // an unhandled rejection must not end the process
      return sampling
    },
    reserve,
    record(step, place = reserve()) {
      checkKeys("a recorded step", step, recordKeys)
      try {
        fill(place, step)
      } catch (error) {
        throw unwrapFault(error)
      }
      return place
    },
    reward: (step, value) => log.reward(step, value),
  }

  return { context, pending }
}

/** Step of an episode, with defaults for what the agent left out. */
function stepOf(recorded: StepInput, tokenizer: ChatCodec): EpisodeStep {
  const { prompt, completion, attachments, images } = recorded
  const text = recorded.text ?? decodeCompletion(tokenizer, completion)
  return {
    observation: {
      text: recorded.observation ?? "",
      anchor: recorded.anchor ?? digest(prompt, attachments),
      ...(images && { images }),
    },
    prompt,
    completion,
    logProbs: recorded.logProbs,
    ...(recorded.entropies && { entropies: recorded.entropies }),
    text,
    action: recorded.action ?? text,
    valid: recorded.valid ?? true,
    reward: recorded.reward ?? 0,
    ...(recorded.metrics !== undefined && { metrics: { ...checkMeasured(contract, recorded.metrics) } }),
    finishReason: recorded.finishReason ?? "stop",
    ...(attachments && { attachments }),
    ...(recorded.conversation !== undefined && { conversation: recorded.conversation }),
    ...(recorded.agent !== undefined && { agent: recorded.agent }),
    ...(recorded.retokenized !== undefined && { retokenized: recorded.retokenized }),
    ...(recorded.constraint !== undefined && { constraint: recorded.constraint }),
  }
}

function checkKeys(what: string, given: object, known: Readonly<Record<string, true>>): void {
  if (typeof given !== "object" || given === null)
    throw contract.broken(`${what} must be an object, not ${inspect(given)}`)
  const unknown = unknownKey(given, known)
  if (unknown) throw contract.broken(`in ${what} ${unknown}`)
}

/** Digest of a prompt. Prompts with different images have equal tokens, so that the hashes of the images belong to it. */
function digest(prompt: Int32Array, attachments: readonly unknown[] = []): string {
  const hash = createHash("sha256").update(prompt)
  for (const attachment of attachments) hash.update(String((attachment as { readonly hash?: unknown })?.hash))
  return hash.digest("base64")
}
