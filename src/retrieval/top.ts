/** Best `limit` documents: a heap with the worst on top. */
export class Top {
  readonly #limit: number
  readonly #before: (document: number, other: number) => boolean
  readonly #scores: number[] = []
  readonly #documents: number[] = []

  /** @param before - whether the first of two documents with equal scores ranks higher */
  constructor(limit: number, before: (document: number, other: number) => boolean) {
    this.#limit = limit
    this.#before = before
  }

  /** Scores below this value cannot enter. */
  get threshold(): number {
    return this.#scores.length < this.#limit ? Number.NEGATIVE_INFINITY : (this.#scores[0] ?? Number.POSITIVE_INFINITY)
  }

  offer(score: number, document: number): void {
    if (this.#scores.length < this.#limit) {
      this.#scores.push(score)
      this.#documents.push(document)
      this.#rise(this.#scores.length - 1)
    } else if (this.#limit > 0 && this.#worse(this.#scores[0]!, this.#documents[0]!, score, document)) {
      this.#scores[0] = score
      this.#documents[0] = document
      this.#sink()
    }
  }

  /** Documents, best first. */
  ranked(): { score: number; document: number }[] {
    const entries = this.#scores.map((score, i) => ({ score, document: this.#documents[i]! }))
    return entries.sort((a, b) => (this.#worse(a.score, a.document, b.score, b.document) ? 1 : -1))
  }

  #worse(score: number, document: number, otherScore: number, other: number): boolean {
    return score !== otherScore ? score < otherScore : this.#before(other, document)
  }

  #rise(at: number): void {
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#below(at, parent)) return
      this.#swap(at, parent)
      at = parent
    }
  }

  #sink(): void {
    for (let at = 0; ; ) {
      let worst = at
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < this.#scores.length && this.#below(child, worst)) worst = child
      if (worst === at) return
      this.#swap(at, worst)
      at = worst
    }
  }

  #below(i: number, j: number): boolean {
    return this.#worse(this.#scores[i]!, this.#documents[i]!, this.#scores[j]!, this.#documents[j]!)
  }

  #swap(i: number, j: number): void {
    ;[this.#scores[i], this.#scores[j]] = [this.#scores[j]!, this.#scores[i]!]
    ;[this.#documents[i], this.#documents[j]] = [this.#documents[j]!, this.#documents[i]!]
  }
}
