import type { Pace } from "../util/pace.ts"
import { lengthToByte } from "./length-byte.ts"
import type { Segment } from "./segment.ts"

const mostDocuments = 1 << 16
const mostPostings = 1 << 21

/** Collects documents term by term, and sorts postings by term when a segment is full. */
export class SegmentWriter {
  #base = 0
  #ids: string[] = []
  #lengths = new Uint8Array(mostDocuments)
  // One entry per posting, in document order.
  #terms: Uint32Array = new Uint32Array(1 << 16)
  #documents: Uint16Array = new Uint16Array(1 << 16)
  #counts: Uint32Array = new Uint32Array(1 << 16)
  #postings = 0
  #first = 0 // the open document's first posting
  #length = 0
  // One entry per term: its last posting, valid if in the open document, and its postings in this segment.
  #last: Uint32Array = new Uint32Array(1 << 14)
  #frequencies: Uint32Array = new Uint32Array(1 << 14)
  #present: number[] = []

  get full(): boolean {
    return this.#ids.length === mostDocuments || this.#postings >= mostPostings
  }

  get empty(): boolean {
    return this.#ids.length === 0
  }

  /** Counts an occurrence of a term in the open document. */
  add(term: number): void {
    this.#length++
    if (term >= this.#last.length) {
      this.#last = grown(this.#last, term)
      this.#frequencies = grown(this.#frequencies, term)
    }
    const last = this.#last[term]!
    if (last >= this.#first && last < this.#postings && this.#terms[last] === term) {
      this.#counts[last]!++
      return
    }
    const posting = this.#postings++
    if (posting >= this.#terms.length) {
      this.#terms = grown(this.#terms, posting)
      this.#documents = grown(this.#documents, posting)
      this.#counts = grown(this.#counts, posting)
    }
    this.#last[term] = posting
    this.#terms[posting] = term
    this.#documents[posting] = this.#ids.length
    this.#counts[posting] = 1
    if (this.#frequencies[term]!++ === 0) this.#present.push(term)
  }

  /** Closes the open document. Returns its length in terms. */
  end(id: string): number {
    const length = this.#length
    this.#lengths[this.#ids.length] = lengthToByte(length)
    this.#ids.push(id)
    this.#first = this.#postings
    this.#length = 0
    return length
  }

  /** Returns the documents so far as a segment; the writer continues with an empty one. */
  async finish(pace: Pace): Promise<Segment> {
    await pace.rest()
    const terms = Uint32Array.from(this.#present).sort()
    const starts = new Uint32Array(terms.length + 1)
    // From here on #last contains the position of the next posting of each term.
    for (let i = 0; i < terms.length; i++) {
      this.#last[terms[i]!] = starts[i]!
      starts[i + 1] = starts[i]! + this.#frequencies[terms[i]!]!
      this.#frequencies[terms[i]!] = 0
    }
    const documents = new Uint16Array(this.#postings)
    const counts = new Uint8Array(this.#postings)
    const frequent = new Map<number, number>()
    for (let posting = 0; posting < this.#postings; posting++) {
      const to = this.#last[this.#terms[posting]!]!++
      const count = this.#counts[posting]!
      documents[to] = this.#documents[posting]!
      counts[to] = Math.min(count, 255)
      if (count >= 255) frequent.set(to, count)
      if (posting % 16_384 === 0 && pace.due()) await pace.rest()
    }
    await pace.rest()
    const size = this.#ids.length
    const { ids, idStarts } = pack(this.#ids)
    const segment = { base: this.#base, size, terms, starts, documents, counts, frequent, ids, idStarts }
    const lengths = this.#lengths.slice(0, size)
    this.#base += size
    this.#ids = []
    this.#present = []
    this.#postings = 0
    this.#first = 0
    return { ...segment, lengths }
  }
}

function pack(texts: readonly string[]): { ids: Uint8Array; idStarts: Uint32Array } {
  const ids = Buffer.from(texts.join(""))
  const idStarts = new Uint32Array(texts.length + 1)
  for (const [i, text] of texts.entries()) idStarts[i + 1] = idStarts[i]! + Buffer.byteLength(text)
  return { ids, idStarts }
}

/** Copy with at least twice the size and room for the index. */
function grown<A extends Uint32Array | Uint16Array>(array: A, index: number): A {
  const larger = new (array.constructor as new (length: number) => A)(Math.max(array.length * 2, index + 1))
  larger.set(array)
  return larger
}
