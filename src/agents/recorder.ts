import { inspect } from "node:util"
import type { Call } from "../chat/call.ts"
import type { Turn } from "../chat/call-order.ts"
import type { CompletionObserver } from "../chat/completion-generator.ts"
import { lastInput } from "../chat/last-input.ts"
import { type AgentResult, readEnd } from "../endpoint/posted.ts"
import { imageHash } from "../images/image.ts"
import { isObject } from "../options/read.ts"
import { EndOfEpisode } from "../rollout/end-of-episode.ts"
import type { AgentLoopContext, EpisodeEnd } from "../rollout/play.ts"
import { GigpoError } from "../util/errors.ts"

type Recording = Pick<AgentLoopContext, "reserve" | "record" | "reward">

/** Records the completions of an episode as its steps. */
export class Recorder implements CompletionObserver {
  /** Why the episode had to end without a fault of the agent. */
  over: EndOfEpisode | undefined
  /** Call that did not fit the model. */
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

  stand(state: { readonly anchor: string }): void {
    if (!isObject(state) || typeof state.anchor !== "string")
      throw wrong(`step() got ${inspect(state, { depth: 1 })}; give it { anchor }, a string`)
    this.#anchor = state.anchor
  }

  begin(call: Call): number {
    try {
      const place = this.#context.reserve()
      this.#states.set(place, this.#anchor ?? this.#stateOf(call))
      return place
    } catch (error) {
      if (error instanceof EndOfEpisode) this.over = error
      throw error
    }
  }

  /** Last input of the model, with the hashes of its images. */
  #stateOf({ messages }: Call): string {
    const { text, images } = lastInput(messages)
    return [this.#normalize(text), ...images.map(imageHash)].join("\n")
  }

  record: CompletionObserver["record"] = (completion, call, place, turn) => {
    if (this.#overflown && !turn.beside.has(this.#overflown)) this.#overcome()
    // Successive calls are ordered by time; concurrent calls by content, since their timing is random.
    const order = [padded(turn.now), completion.history, padded(completion.again), padded(completion.number)].join(" ")
    this.#places.set(completion.id, place)
    const { follows, retokenized, attachments } = completion
    const { text, images } = lastInput(call.messages)
    this.#context.record(
      {
        ...{ prompt: completion.prompt, completion: completion.tokens, logProbs: completion.logProbs },
        entropies: completion.completion.entropies,
        anchor: this.#states.get(place)!,
        observation: text,
        ...(images.length > 0 && { images }),
        ...(attachments && { attachments }),
        action:
          completion.toolCalls.length > 0
            ? JSON.stringify(completion.toolCalls.map(({ name, arguments: given }) => [name, given]))
            : completion.content,
        valid: !completion.broken,
        finishReason: completion.completion.finishReason,
        ...{ order, follows: follows ? this.#places.get(follows.id)! : null },
        ...((follows || retokenized) && { retokenized }),
        ...(completion.constraint && { constraint: completion.constraint }),
      },
      place,
    )
    if (!this.#last || order > this.#last.order) this.#last = { place, order }
  }

  overflow(turn: Turn): void {
    this.#overflown = turn
    this.over ??= new EndOfEpisode("overflow", "A call of the agent exceeds the model's positions.")
  }

  /** The agent continued with a shorter call: a later end has another reason. */
  #overcome(): void {
    this.#overflown = undefined
    if (this.over?.outcome === "overflow") this.over = undefined
  }

  reward(value: number): void {
    if (!Number.isFinite(value)) throw wrong(`reward() got ${inspect(value)}; give a finite number`)
    if (this.#last === undefined) throw wrong("reward() was called before the first completion")
    const { place } = this.#last
    this.#rewards[place] = (this.#rewards[place] ?? 0) + value
    this.#context.reward(place, this.#rewards[place]!)
  }

  /** Whether there is a completion. */
  get began(): boolean {
    return this.#last !== undefined
  }

  /** @param rejection - last rejection, if every call was rejected */
  end(given: AgentResult | null, refusal: string | undefined): EpisodeEnd | null {
    const end = readEnd(given)
    if (end === null) return null
    if (!this.began)
      throw wrong(
        `it ended with a reward but without a completion: ${refusal ? `every call was rejected: ${refusal.replace(/\.$/, "")}` : "it did not call the model"}`,
      )
    const { reward, success, metrics } = end
    return { reward, metrics: { ...metrics, ...(success !== undefined && { success: success ? 1 : 0 }) } }
  }
}

/** Number as text whose alphabetical order is the numerical order. */
function padded(number: number): string {
  return String(number).padStart(10, "0")
}

function wrong(what: string): GigpoError {
  return new GigpoError("BAD_ARGUMENT", `The agent broke its contract: ${what}.`)
}
