/** Detector of lost success: compares a series of unsuccessful episodes with the success rate before. */
export class SuccessWatch {
  readonly #least: number
  /** Episodes up to the last iteration with a success, successes among them, and episodes since. */
  #episodes = 0
  #solved = 0
  #since = 0
  #warned = false

  /** @param least - probability of a series without success below which success counts as lost. 0 turns the detector off. */
  constructor(least: number) {
    this.#least = least
  }

  /** Number of episodes since the last success, counted in whole iterations; undefined before the first success. */
  get unsolved(): number | undefined {
    return this.#solved === 0 ? undefined : this.#since
  }

  /** Adds the episodes of one iteration or evaluation. Returns a message where success is lost, once until the next success. */
  add(count: number, solved: number): string | undefined {
    this.#since += count
    if (solved > 0) {
      this.#episodes += this.#since
      this.#solved += solved
      this.#since = 0
      this.#warned = false
    }
    if (this.#warned || this.#solved === 0) return undefined
    const before = this.#solved / this.#episodes
    const chance = (1 - before) ** this.#since
    if (chance >= this.#least) return undefined
    this.#warned = true
    const share = `${Number((100 * before).toPrecision(2))} %`
    return `None of the last ${this.#since} episodes succeeded, compared with ${share} of the ${this.#episodes} episodes before`
  }
}
