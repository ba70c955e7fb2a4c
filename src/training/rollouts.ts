import { setMaxListeners } from "node:events"
import type { TrainingProgress } from "../options/schedule.ts"
import { checkMethods } from "../rollout/check-setup.ts"
import { type Checkpoint, type Saved, samplerPath } from "../runs/checkpoint.ts"
import { type Memory, remember } from "../runs/snapshot.ts"
import { linkAbort } from "../util/linked-abort.ts"
import type { Stopwatch } from "./metrics.ts"
import { type Played, play } from "./played.ts"
import { playingParts } from "./playing-parts.ts"
import type { Training } from "./prepare.ts"

/** Rollout with a snapshot of the weights. */
interface Ahead<Task> {
  /** Number of completed iterations before the one that learns from the rollout. */
  readonly iteration: number
  readonly sampler: NonNullable<Saved["sampler"]>
  /** States of the parts that take part in a rollout, before it. */
  readonly memory: Memory
  /** Rollout; undefined until it begins. */
  played?: Promise<Played<Task>>
}

/** Rollout of an iteration, with its metrics. */
export interface NextRollout<Task> extends Played<Task> {
  readonly metrics: Readonly<Record<string, number>>
}

/**
 * Rollouts of a training run. With `maxStaleness: 1` (one-step-off policy), the rollout of an iteration runs during the updates of the iteration
 * before, on a snapshot of the weights before these updates.
 *
 * A checkpoint has the snapshot, and the states of hooks and tasks from before the rollout. A resumed run repeats the rollout from these.
 * Episodes are not saved: a rollout may be far from its end when a run is stopped, and observations of an environment may be any values.
 */
export class Rollouts<Task> {
  readonly #training: Training<Task>
  readonly #stop = new AbortController()
  readonly #unlink: () => void
  /** Rollout of the current iteration until its updates are complete: an iteration that is dropped is repeated from there. */
  #current: Ahead<Task> | undefined
  /** Rollout of the next iteration. */
  #ahead: Ahead<Task> | undefined
  #awaited = false

  /** Opens the rollouts of a training run whose state is restored from `checkpoint`. */
  static async open<Task>(training: Training<Task>, checkpoint: Checkpoint | undefined): Promise<Rollouts<Task>> {
    const rollouts = new Rollouts(training)
    const { sampler } = checkpoint ?? {}
    // Where the checkpoint has no snapshot, as that after the last iteration, the next rollout has the current weights.
    if (checkpoint && sampler && training.options.maxStaleness > 0) {
      const snapshot = await training.policy.snapshots!.open(sampler.handle, samplerPath(checkpoint))
      rollouts.#ahead = rollouts.#with({ snapshot, iteration: sampler.iteration }, checkpoint.iteration)
    }
    return rollouts
  }

  private constructor(training: Training<Task>) {
    this.#training = training
    setMaxListeners(0, this.#stop.signal) // every episode in flight listens
    this.#unlink = linkAbort(training.signal, this.#stop)
  }

  /** Returns the rollout of an iteration. */
  async next(progress: TrainingProgress, clock: Stopwatch): Promise<NextRollout<Task>> {
    const { options } = this.#training
    if (options.maxStaleness === 0) {
      const played = await play(this.#training, progress)
      clock.lap("rollout")
      return { ...played, metrics: {} }
    }
    const current = this.#ahead ?? (await this.#take(progress.iteration, progress.iteration))
    ;[this.#current, this.#ahead] = [current, undefined]
    this.#awaited = true
    try {
      const played = await this.#begin(current, progress)
      clock.lap("rollout-wait")
      const staleness = progress.iteration - current.sampler.iteration
      return { ...played, metrics: { "rollout/staleness": staleness, "time/rollout": played.seconds } }
    } finally {
      this.#awaited = false
    }
  }

  /** Begins the rollout of the next iteration, if there is one, with a snapshot of the weights before the updates of the current one. */
  async ahead({ iteration, iterations }: TrainingProgress): Promise<void> {
    if (this.#training.options.maxStaleness === 0 || iteration + 1 >= iterations) return
    this.#ahead = await this.#take(iteration + 1, iteration)
    void this.#begin(this.#ahead, { iteration: iteration + 1, iterations })
  }

  /** To be called after the updates of an iteration. */
  async complete(): Promise<void> {
    const current = this.#current
    this.#current = undefined
    await current?.sampler.snapshot[Symbol.asyncDispose]()
  }

  /** Content of a checkpoint after `completed` iterations; undefined if the next rollout has the current weights. */
  before(completed: number): Pick<Ahead<Task>, "sampler" | "memory"> | undefined {
    return [this.#current, this.#ahead].find((one) => one?.iteration === completed)
  }

  /** Ends the rollout in progress. Snapshots stay, for a checkpoint. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#ahead?.played?.catch(() => {})
    this.#unlink()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    for (const one of [this.#current, this.#ahead]) await one?.sampler.snapshot[Symbol.asyncDispose]()
  }

  async #take(iteration: number, weights: number): Promise<Ahead<Task>> {
    return this.#with({ snapshot: await this.#training.policy.snapshots!.take(), iteration: weights }, iteration)
  }

  #with(sampler: Ahead<Task>["sampler"], iteration: number): Ahead<Task> {
    checkMethods("The snapshot of policy.snapshots", sampler.snapshot, ["sample", "logProbs", "save"])
    return { iteration, sampler, memory: remember(playingParts(this.#training.parts)) }
  }

  #begin(one: Ahead<Task>, progress: TrainingProgress): Promise<Played<Task>> {
    const { onProgress, ...training } = this.#training
    const shown: typeof onProgress = (done) => {
      if (this.#awaited) onProgress?.(done)
    }
    const aborted = { ...training, onProgress: shown, signal: this.#stop.signal }
    one.played ??= play(aborted, progress, one.sampler.snapshot)
    one.played.catch(() => {}) // reported by the iteration that waits for the rollout
    return one.played
  }
}
