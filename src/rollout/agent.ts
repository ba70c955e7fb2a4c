import { createHash } from "node:crypto"
import { setImmediate } from "node:timers/promises"
import { checkSamplingTemperature, checkWhole } from "../engine/check-arguments.ts"
import type { Sampler } from "../engine/engine.ts"
import { checkMessages, checkParsed, environmentError, playing } from "../environment/contract.ts"
import { GigpoError } from "../errors.ts"
import { linkAbort, unlessAborted } from "../linked-abort.ts"
import type { Episode, EpisodeSetup, EpisodeStep } from "./episode.ts"
import { RolloutFault } from "./faults.ts"
import type { Play, PlayContext, RecordedStep } from "./play.ts"
import { EndOfEpisode, episodeOf, StepLog } from "./step-log.ts"

export interface AgentSetup<Task> extends Omit<EpisodeSetup<Task>, "environment" | "environmentTimeout"> {
  readonly play: Play<Task>
  readonly index: number
  readonly member: number
}

const contract = playing("play")

/** Lets somebody's own agent play one episode; rejects as `runEpisode` does, and an agent's fault is an outcome as an environment's is. */
export async function runAgent<Task>(
  setup: AgentSetup<Task>,
  onStep?: (step: EpisodeStep, index: number) => void,
): Promise<Episode> {
  const { play, signal, random, tokenizer, temperature, maxReplyTokens, maxPositions } = setup
  const { task, index, member } = setup
  const own = new AbortController()
  const unlink = linkAbort(signal, own)
  const log = new StepLog(contract, setup.maxSteps)
  const policy = guardPolicy(setup.policy, own)
  const pending: Promise<unknown>[] = []

  const fill = (place: number, { prompt, reply, ...said }: RecordedStep): void => {
    const text = said.text ?? tokenizer.decode(reply, { skipSpecial: true })
    const step: EpisodeStep = {
      observation: { text: said.observation ?? "", anchor: said.anchor ?? digest(prompt) },
      prompt,
      reply,
      logProbs: said.logProbs,
      text,
      action: said.action ?? text,
      valid: said.valid ?? true,
      reward: said.reward ?? 0,
      finishReason: said.finishReason ?? "stop",
      ...(said.attachments && { attachments: said.attachments }),
      ...(said.conversation !== undefined && { conversation: said.conversation }),
      ...(said.agent !== undefined && { agent: said.agent }),
      ...(said.temperature !== undefined && said.temperature !== temperature && { temperature: said.temperature }),
      ...(said.constraint !== undefined && { constraint: said.constraint }),
    }
    log.fill(place, step)
    try {
      onStep?.(step, place)
    } catch (error) {
      own.abort(new RolloutFault(error))
      throw error
    }
  }

  const sample: PlayContext["sample"] = async (messages, options = {}) => {
    const step = log.reserve() // before anything is waited for
    const { maxTokens = maxReplyTokens, stopTokens = tokenizer.eosTokens, parse, ...said } = options
    const asked = { maxTokens, temperature: options.temperature ?? temperature, stopTokens }
    checkMessages(contract, messages)
    checkWhole(maxTokens, "maxTokens")
    checkSamplingTemperature(asked.temperature)
    const { tokens: prompt, ...rest } = await tokenizer.encodeChat(messages)
    if (prompt.length + maxTokens > maxPositions)
      throw new EndOfEpisode(
        "overflow",
        `A prompt of ${prompt.length} tokens and a reply of ${maxTokens} do not fit the model's ${maxPositions} positions; shorten the prompt or lower maxTokens.`,
      )
    const { key } = random.fork("reply", step)
    const { tokens, logProbs, finishReason } = await policy.sample({ prompt, ...rest, ...asked, key })
    const text = tokenizer.decode(tokens, { skipSpecial: true })
    const { action, valid } = parse ? checkParsed(contract, "parse()", parse(text)) : { action: text, valid: true }
    const observation = options.observation ?? messages.at(-1)!.content
    fill(step, { ...said, ...rest, prompt, reply: tokens, logProbs, text, action, valid, finishReason, observation })
    return { step, text, tokens, action, valid, finishReason }
  }

  const context: PlayContext<Task> = {
    ...{ task, index, member, policy, tokenizer, maxPositions, temperature, maxReplyTokens },
    random: random.fork("agent"),
    signal: own.signal,
    sample(messages, options) {
      const sampling = notAtOnce(sample(messages, options))
      pending.push(sampling.catch(() => {})) // what nobody waits for must not end the process
      return sampling
    },
    record(step) {
      const place = log.reserve()
      fill(place, step)
      return place
    },
    reward: (step, value) => log.reward(step, value),
  }

  let finish: () => Episode
  try {
    const end = await unlessAborted(own.signal, () => play(context))
    finish = () => log.end(end)
  } catch (error) {
    if (!(error instanceof EndOfEpisode)) own.abort(error) // nobody needs what is still under way
    finish = () => {
      throw error
    }
  }
  log.close()
  await Promise.all(pending) // what was asked for before the end counts, whenever it comes
  unlink()
  signal?.throwIfAborted()
  own.abort() // and what the agent still does
  if (own.signal.reason instanceof RolloutFault) throw own.signal.reason.cause
  try {
    return finish()
  } catch (error) {
    const [steps, metrics] = [log.steps(), {}]
    if (error instanceof EndOfEpisode) return episodeOf(steps, { outcome: error.outcome, metrics })
    return episodeOf(steps, { outcome: "failed", metrics, error: environmentError("play", error) })
  }
}

/**
 * The policy as an agent is given it: completions end with the episode. A request that it refuses is the agent's own fault; when the
 * policy fails otherwise the rollout ends, whatever the agent makes of it.
 */
function guardPolicy(policy: Sampler, episode: AbortController): Sampler {
  const { vocabularySize, maxPositions, deterministic } = policy
  const sample: Sampler["sample"] = async (request) => {
    try {
      return await policy.sample({ ...request, signal: request.signal ?? episode.signal })
    } catch (error) {
      const refused = GigpoError.is(error) && error.code === "BAD_ARGUMENT"
      if (!refused && !episode.signal.aborted && !request.signal?.aborted) episode.abort(new RolloutFault(error))
      throw error
    }
  }
  return {
    ...{ vocabularySize, maxPositions, deterministic },
    sample: (request) => notAtOnce(sample(request)),
  }
}

/** Fails a turn of the event loop later: an agent that tries again and again must not keep everybody else from theirs. */
async function notAtOnce<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    await setImmediate()
    throw error
  }
}

function digest(prompt: Int32Array): string {
  return createHash("sha256").update(prompt).digest("base64")
}
