/** Notices that episodes no longer succeed, by how often they did before. */
export class SuccessWatch {
  readonly #least: number
  /** Episodes up to the last one that succeeded, how many of them did, and how many came after it. */
  #episodes = 0
  #solved = 0
  #since = 0
  #told = false

  /** @param least probability of a streak without success, below which it is no chance; 0 notices none */
  constructor(least: number) {
    this.#least = least
  }

  /** Episodes since one succeeded, in whole iterations; undefined before the first success. */
  get unsolved(): number | undefined {
    return this.#solved === 0 ? undefined : this.#since
  }

  /** Adds the episodes of one iteration or evaluation. Returns what is wrong where success is lost, once until it is back. */
  add(count: number, solved: number): string | undefined {
    this.#since += count
    if (solved > 0) {
      this.#episodes += this.#since
      this.#solved += solved
      this.#since = 0
      this.#told = false
    }
    if (this.#told || this.#solved === 0) return undefined
    const before = this.#solved / this.#episodes
    const chance = (1 - before) ** this.#since
    if (chance >= this.#least) return undefined
    this.#told = true
    const share = `${Number((100 * before).toPrecision(2))} %`
    return `None of the last ${this.#since} episodes succeeded, while ${share} of the ${this.#episodes} before did`
  }
}
