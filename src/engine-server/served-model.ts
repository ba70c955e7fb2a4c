import type { NativePolicy } from "../engine/native/native-policy.ts"
import type { TrainingResult } from "../tinker/results.ts"
import type { TrainingCall } from "../tinker/training-call.ts"
import { type Owner, Pace } from "../util/pace.ts"
import type { Departures } from "./departures.ts"
import { type CallOptions, learn, meanScales, type Prepared, prepare, score, weighed } from "./losses.ts"
import type { Result, Results } from "./results.ts"

/** Parameters of an optimizer step, named as in the API. */
export interface AdamParams {
  readonly learning_rate: number
  readonly beta1: number
  readonly beta2: number
  readonly eps: number
  readonly weight_decay: number
  readonly grad_clip_norm: number
}

/** Trained model. Requests that change it run in the order of their numbers, each number once. */
export class ServedModel {
  readonly id: string
  readonly baseModel: string
  readonly rank: number
  readonly policy: NativePolicy
  /** Number of changes of the weights so far. */
  version = 0
  /** Weights published last; for the deviation "shared-slot". */
  newestSlot: string | undefined
  readonly #results: Results
  readonly #options: CallOptions
  /** Work by number that waits for lower numbers. */
  readonly #early = new Map<number, () => void>()
  #next = 1
  #last: Promise<unknown> = Promise.resolve()
  /** Data of the current step; for the deviation "mean-of-means". */
  readonly #batch: Prepared[] = []

  constructor(
    about: {
      readonly id: string
      readonly baseModel: string
      readonly rank: number
      readonly policy: NativePolicy
      /** Client whose turns of the event loop the work takes. Default: those of all other work. */
      readonly owner?: Owner
    },
    results: Results,
    departures: Departures,
  ) {
    this.id = about.id
    this.baseModel = about.baseModel
    this.rank = about.rank
    this.policy = about.policy
    this.#results = results
    this.#options = { departures, owner: about.owner }
  }

  /**
   * Accepts a request.
   *
   * @param start checks the request and returns its work. If `start` throws, the number counts as done.
   * @param holds bytes of the request
   * @returns the id of the request; for a repeated number, the earlier id
   */
  take(kind: string, seqId: number, start: () => () => Promise<Result>, holds = 0): string {
    const same = this.#options.departures.has("no-duplicates") ? undefined : `${this.id} ${seqId}`
    return this.#results.take(kind, () => this.#begin(seqId, start), { same, holds })
  }

  #begin(seqId: number, start: () => () => Promise<Result>): Promise<Result> {
    let work: () => Promise<Result>
    try {
      work = start()
    } catch (error) {
      this.#come(seqId, () => {})
      throw error
    }
    const turn = new Promise<void>((resolve) => this.#come(seqId, resolve))
    return turn.then(() => {
      const ran = this.#last.then(work)
      this.#last = ran.catch(() => {})
      return ran
    })
  }

  #come(seqId: number, go: () => void): void {
    // Run immediately if numbers are ignored, or for a repeated or late number.
    if (this.#options.departures.has("no-duplicates") || seqId < this.#next) {
      go()
      return
    }
    this.#early.set(seqId, go)
    for (let next = this.#early.get(this.#next); next; next = this.#early.get(this.#next)) {
      this.#early.delete(this.#next++)
      next()
    }
  }

  /**
   * Checks a training call in short pieces.
   *
   * @returns the argument `start` of `take`, which throws for an invalid call, so that its number counts as done
   */
  async checked(call: TrainingCall): Promise<() => () => Promise<Result>> {
    try {
      const pace = new Pace(undefined, this.#options.owner)
      const prepared = await pace.through(prepare(call, this.#options.departures, this.policy.config.vocabularySize))
      return () => this.#train(prepared, call.forwardOnly)
    } catch (error) {
      return () => {
        throw error
      }
    }
  }

  #train(prepared: Prepared, forwardOnly: boolean): () => Promise<Result> {
    const departures = this.#options.departures
    const work = async (): Promise<TrainingResult> => {
      if (forwardOnly) return await score(this.policy, prepared, this.#options)
      const found = await this.#learn(prepared)
      if (!departures.has("zero-log-probs")) return found
      return { ...found, logProbs: found.logProbs.map(({ length }) => new Float32Array(length)) }
    }
    return async () => ({ kind: "training", result: await work() })
  }

  async #learn(prepared: Prepared): Promise<TrainingResult> {
    if (!this.#options.departures.has("mean-of-means")) return await learn(this.policy, prepared, this.#options)
    // The number of data, the divisor, is known only when the step is taken.
    this.#batch.push(weighed(prepared))
    return await score(this.policy, prepared, this.#options)
  }

  step(adam: AdamParams): () => Promise<Result> {
    return async () => {
      const total = this.#batch.reduce((sum, { data }) => sum + data.length, 0)
      for (const prepared of this.#batch.splice(0))
        await learn(this.policy, prepared, this.#options, meanScales(prepared, total, this.#options.departures))
      const clips = adam.grad_clip_norm > 0 && !this.#options.departures.has("ignored-clip")
      const { gradientNorm, skipped } = await this.policy.optimizerStep({
        learningRate: adam.learning_rate,
        beta1: adam.beta1,
        beta2: adam.beta2,
        epsilon: adam.eps,
        weightDecay: adam.weight_decay,
        maxGradientNorm: clips ? adam.grad_clip_norm : Number.POSITIVE_INFINITY,
      })
      this.version++
      const norm = this.#options.departures.has("no-gradient-norm") ? {} : { "grad_norm:mean": gradientNorm }
      return { kind: "json", body: { type: "optim_step", metrics: { ...norm, "skipped:max": skipped ? 1 : 0 } } }
    }
  }

  forget(): () => Promise<Result> {
    return async () => {
      this.#batch.length = 0
      await this.policy.clearGradients()
      return { kind: "json", body: { type: "clear_gradients" } }
    }
  }
}
