import { decodeSample, type SampleResult, sampleFromJson } from "../../tinker/results.ts"
import { GigpoError } from "../../util/errors.ts"
import { shortAnswer } from "./connection.ts"
import { LostResult } from "./futures.ts"
import { understood, unlessRefused } from "./refused.ts"
import { type RemoteModel, requestIdOf } from "./remote-model.ts"
import type { Session } from "./session.ts"

/** Maximum attempts for a sample whose result is lost. */
const mostLost = 5
/** Maximum bytes of a response per token and per requested most likely token: numbers in JSON. */
const bytesPerToken = 128
/** Maximum number of sampling requests in progress. Others are queued in this process, so that they need no connection to the server. */
const mostAtOnce = 512

/** Parameters of one request to /asample, except the sampling session. */
export interface SampleRequest {
  readonly prompt: Int32Array
  readonly params: { readonly max_tokens: number; readonly [name: string]: unknown }
  readonly promptLogProbs?: boolean
  readonly topTokens?: number
}

/** Client of the server's sampling sessions. Requests are numbered per session, so that the server recognizes repeated ones. */
export class Samplers {
  readonly #session: Session
  readonly #next = new Map<string, number>()
  #running = 0
  readonly #waiting: (() => void)[] = []
  #sessions = 0

  constructor(session: Session) {
    this.#session = session
  }

  /** Saves the current weights for sampling and returns a sampling session of them. `name` is used only if the server requires one. */
  async publish(model: RemoteModel, name: string): Promise<string> {
    const unnamed = { sampling_session_seq_id: this.#sessions++, type: "save_weights_for_sampler" }
    const saved = await unlessRefused(() => model.call("/save_weights_for_sampler", unnamed))
    const { sampling_session_id } = (saved?.body ?? {}) as { sampling_session_id?: unknown }
    if (typeof sampling_session_id === "string") return sampling_session_id
    const { body } = await model.call("/save_weights_for_sampler", { path: name, type: "save_weights_for_sampler" })
    const { path } = (body ?? {}) as { path?: unknown }
    if (typeof path !== "string")
      throw new GigpoError("ENGINE_REJECTED", "The engine saved weights for sampling but returned no path.")
    return await this.open({ model_path: path })
  }

  /** Opens a sampling session of saved weights or of a base model. */
  async open(of: { readonly model_path: string } | { readonly base_model: string }): Promise<string> {
    const { sampling_session_id } = await this.#session.post("/create_sampling_session", {
      ...{ session_id: this.#session.id, sampling_session_seq_id: this.#sessions++, type: "create_sampling_session" },
      ...of,
    })
    if (typeof sampling_session_id === "string") return sampling_session_id
    throw new GigpoError("ENGINE_REJECTED", "The engine opened no sampling session.")
  }

  /** Returns one sample. A result that the server lost is requested again as a new sample, which is safe because the lost one was never used. */
  async draw(
    of: string,
    { prompt, params, promptLogProbs, topTokens }: SampleRequest,
    signal?: AbortSignal,
  ): Promise<SampleResult> {
    await this.#waitForSlot()
    try {
      for (let lost = 0; ; lost++) {
        const seq_id = this.#next.get(of) ?? 0
        this.#next.set(of, seq_id + 1)
        const body = {
          ...{ sampling_session_id: of, seq_id, num_samples: 1, type: "sample" },
          prompt: { chunks: [{ type: "encoded_text", tokens: Array.from(prompt) }] },
          sampling_params: { top_k: -1, top_p: 1, ...params },
          prompt_logprobs: promptLogProbs ?? false,
          topk_prompt_logprobs: 0,
          ...(topTokens && { topk_sample_logprobs: topTokens }),
        }
        const headers = { "x-tinker-sampling-backpressure": "1", "x-session-id": `${of}:${seq_id}` }
        const answer = await this.#session.connection.send({ path: "/asample", body, headers, signal }, true)
        try {
          const most = shortAnswer + bytesPerToken * (1 + (topTokens ?? 0)) * (prompt.length + params.max_tokens)
          const id = requestIdOf(answer.body, "/asample")
          const { bytes, body } = await this.#session.futures.result(id, "/sample", { protobuf: true, most, signal })
          const found = understood("/asample", () => (bytes ? decodeSample(bytes) : sampleFromJson(body)))
          checkAnswer(found, params.max_tokens)
          return found
        } catch (error) {
          if (!(error instanceof LostResult)) throw error
          if (lost + 1 >= mostLost)
            throw new GigpoError("ENGINE_LOST", `The engine has lost ${mostLost} samples in a row: ${error.message}.`)
        }
      }
    } finally {
      this.#running--
      this.#waiting.shift()?.()
    }
  }

  /** Returns the log-probabilities of all tokens but the first, [tokens - 1]. */
  async score(of: string, tokens: Int32Array, signal?: AbortSignal): Promise<Float32Array> {
    const request = { prompt: tokens, params: { max_tokens: 1, temperature: 1 }, promptLogProbs: true }
    const { promptLogProbs } = await this.draw(of, request, signal)
    // Some servers leave out the value of the first token.
    const found = promptLogProbs?.length === tokens.length ? promptLogProbs.subarray(1) : promptLogProbs
    if (found?.length !== tokens.length - 1)
      throw new GigpoError("ENGINE_REJECTED", "The engine's samplers report no log-probabilities of prompts.")
    return found
  }

  async #waitForSlot(): Promise<void> {
    while (this.#running >= mostAtOnce) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#running++
  }
}

function checkAnswer({ sequences }: SampleResult, most: number): void {
  if (sequences.length > 1)
    throw new GigpoError("ENGINE_REJECTED", `The engine returned ${sequences.length} samples for a request of one.`)
  for (const { tokens } of sequences)
    if (tokens.length > most)
      throw new GigpoError(
        "ENGINE_REJECTED",
        `The engine sampled ${tokens.length} tokens, above the requested maximum of ${most}.`,
      )
}
