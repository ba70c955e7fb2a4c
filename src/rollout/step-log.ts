import { inspect } from "node:util"
import { type Contract, checkObservation, checkReward } from "../environment/contract.ts"
import { unknownKey } from "../options/unknown-key.ts"
import { GigpoError } from "../util/errors.ts"
import { checkCompletion, checkMeasured } from "./check-step.ts"
import { EndOfEpisode } from "./end-of-episode.ts"
import { type Episode, type EpisodeStep, totalReward } from "./episode.ts"
import type { EpisodeEnd, StepInput } from "./play.ts"

const endKeys: Record<keyof EpisodeEnd, true> = {
  outcome: true,
  rewards: true,
  reward: true,
  metrics: true,
  last: true,
}

/** Order and conversation of a step. */
type Standing = Pick<StepInput, "follows" | "order">

interface Place extends Standing {
  step?: EpisodeStep
  reward?: number
}

/** Steps of an agent's episode. The index of a step is reserved at its request, before the step is recorded. */
export class StepLog {
  readonly #contract: Contract
  readonly #maxSteps: number
  /** Reserved steps. A place stays empty if sampling failed. */
  readonly #places: Place[] = []
  #closed = false

  constructor(contract: Contract, maxSteps: number) {
    this.#contract = contract
    this.#maxSteps = maxSteps
  }

  /** Reserves the index of the next step. */
  reserve(): number {
    if (this.#closed) throw this.#wrong("The episode is over; record all steps before agentLoop() ends")
    if (this.#places.length >= this.#maxSteps)
      throw new EndOfEpisode(
        "truncated",
        `The episode has reached its maximum of ${this.#maxSteps} steps (rollout.maxSteps).`,
      )
    return this.#places.push({}) - 1
  }

  fill(index: number, step: EpisodeStep, { follows, order = "" }: Standing = {}): void {
    const place = this.#places[index]
    if (!place || place.step) throw this.#wrong(`The step ${inspect(index)} is not reserved, or is already recorded`)
    if (typeof order !== "string") throw this.#wrong(`The order of a step is ${inspect(order)}; give a string`)
    if (typeof follows === "number" && !this.#places[follows]?.step)
      throw this.#wrong(`A step follows ${inspect(follows)}, which is not a recorded step`)
    Object.assign(place, { step: checkCompletion(this.#contract, step), follows, order })
  }

  reward(index: number, value: number): void {
    if (this.#closed)
      throw this.#wrong("The episode is over; set rewards before agentLoop() ends, or give them with its end")
    const place = this.#places[index]
    if (!place) throw this.#wrong(`There is no step ${inspect(index)}; ${this.#places.length} are reserved so far`)
    place.reward = checkReward(this.#contract, value)
  }

  close(): void {
    this.#closed = true
  }

  steps(rewards: readonly number[] = []): EpisodeStep[] {
    const filled = this.#places.flatMap(({ step, reward, ...standing }, index) =>
      step ? [{ ...standing, index, step: { ...step, reward: rewards[index] ?? reward ?? step.reward } }] : [],
    )
    filled.sort((a, b) => Number(a.order! > b.order!) - Number(a.order! < b.order!))
    /** Conversations by their last step. */
    const open = new Map<number, number>()
    let conversations = 0
    return filled.map(({ index, step, follows }) => {
      if (follows === undefined) return step
      const conversation = (follows === null ? undefined : open.get(follows)) ?? conversations++
      if (follows !== null) open.delete(follows)
      open.set(index, conversation)
      return { ...step, conversation }
    })
  }

  /** Returns the episode after agentLoop() has ended. */
  end(end: EpisodeEnd | null): Episode {
    if (end === null) return episodeOf(this.steps(), { outcome: "excluded", metrics: {} })
    if (typeof end !== "object") throw this.#wrong(`agentLoop() ended with ${inspect(end)}; give an object, or null`)
    const unknown = unknownKey(end, endKeys)
    if (unknown) throw this.#wrong(`In the result of agentLoop() ${unknown}`)
    const { outcome = "terminated", rewards, reward, metrics = {}, last } = end
    if (outcome !== "terminated" && outcome !== "truncated")
      throw this.#wrong(`agentLoop() ended with the outcome ${inspect(outcome)}; give "terminated" or "truncated"`)
    if (rewards !== undefined && !(Array.isArray(rewards) && rewards.length === this.#places.length))
      throw this.#wrong(`agentLoop() must return one reward per step, ${this.#places.length} in total`)
    for (const value of rewards ?? []) checkReward(this.#contract, value)
    const steps = this.steps(rewards)
    if (reward !== undefined) {
      const final = steps.pop()
      if (!final) throw this.#wrong("agentLoop() ended with a reward, but the episode has no step")
      steps.push({ ...final, reward: checkReward(this.#contract, final.reward + checkReward(this.#contract, reward)) })
    }
    checkMeasured(this.#contract, metrics)
    if (last) checkObservation(this.#contract, "the end of agentLoop()", last)
    return episodeOf(steps, { outcome, metrics, ...(last && { last }) })
  }

  #wrong(sentence: string): GigpoError {
    return new GigpoError("BAD_ARGUMENT", `${sentence}.`)
  }
}

export function episodeOf(steps: readonly EpisodeStep[], end: Omit<Episode, "steps" | "return">): Episode {
  return { steps, return: totalReward(steps), ...end }
}
