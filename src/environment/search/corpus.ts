import { type FileHandle, open } from "node:fs/promises"
import { checkArguments, type KeysOf } from "../../options/arguments.ts"
import { Bm25Index, type Hit } from "../../retrieval/bm25.ts"
import { GigpoError } from "../../util/errors.ts"
import { decodeLine, readJsonLines } from "../json-lines.ts"
import type { Passage, Retriever } from "./retriever.ts"

/** Corpus with a BM25 index in this process. */
export interface Corpus extends Retriever {
  /** Number of passages. */
  readonly size: number
}

/** Options of `openCorpus`. */
export interface OpenCorpusOptions {
  /** Aborts reading and indexing. */
  readonly signal?: AbortSignal | undefined
  /** Called repeatedly with the number of passages read so far. */
  readonly onProgress?: ((passages: number) => void) | undefined
}

const optionKeys: KeysOf<OpenCorpusOptions> = { signal: true, onProgress: true }

/**
 * Indexes a corpus in JSON Lines with `{"id", "contents"}` or `{"id", "title", "text"}` per line. The index takes about 300 bytes of memory
 * per passage of 80 terms. Passages are read from the file when they are found, so the file must not change.
 *
 * @throws BAD_DATA if the file cannot be read or is empty, or if a line is invalid; the message gives the line number
 */
export async function openCorpus(path: string, options: OpenCorpusOptions = {}): Promise<Corpus> {
  if (typeof path !== "string")
    throw new GigpoError("BAD_ARGUMENT", "openCorpus needs the path of a corpus in JSON Lines.")
  checkArguments("openCorpus", options, optionKeys)
  const places = new Places()
  async function* documents() {
    for await (const { number, start, length, value } of readJsonLines(path, options.signal)) {
      const { id, contents } = readPassage(value, path, number)
      places.push(start, length)
      yield { id, text: contents }
    }
  }
  const index = await Bm25Index.build(documents(), options)
  if (index.size === 0)
    throw new GigpoError("BAD_DATA", `${path} has no passages; a line must read like {"id": "1", "contents": "…"}.`)

  return corpusOf(index, async (hits) => {
    try {
      await using file = await open(path)
      const contents: string[] = []
      for (const { document } of hits) contents.push(await readAt(file, places, document))
      return contents
    } catch (cause) {
      throw new GigpoError(
        "IO",
        `Passages of ${path} cannot be read again; do not change the file while the corpus is open.`,
        { cause },
      )
    }
  })
}

async function readAt(file: FileHandle, places: Places, passage: number): Promise<string> {
  const bytes = Buffer.alloc(places.length(passage))
  await file.read(bytes, 0, bytes.length, places.start(passage))
  return readPassage(JSON.parse(decodeLine(bytes)), "", passage).contents
}

/** Indexes passages in memory. */
export async function memoryCorpus(
  passages: readonly Omit<Passage, "score">[],
  options: OpenCorpusOptions = {},
): Promise<Corpus> {
  function* documents() {
    for (const { id, contents } of passages) yield { id, text: contents }
  }
  const index = await Bm25Index.build(documents(), options)
  return corpusOf(index, async (hits) => hits.map(({ document }) => passages[document]!.contents))
}

function corpusOf(index: Bm25Index, read: (hits: readonly Hit[]) => Promise<readonly string[]>): Corpus {
  return {
    size: index.size,
    async retrieve(query, limit, signal) {
      signal.throwIfAborted()
      const hits = await index.searchSlowly(query, limit, signal)
      const contents = hits.length > 0 ? await read(hits) : []
      signal.throwIfAborted()
      return hits.map(({ id, score }, i) => ({ id, contents: contents[i]!, score }))
    },
  }
}

/** Offset and length of each passage in the file, in bytes. */
class Places {
  #starts = new Float64Array(1 << 10)
  #lengths = new Uint32Array(1 << 10)
  #count = 0

  push(start: number, length: number): void {
    if (this.#count === this.#starts.length) {
      const [starts, lengths] = [this.#starts, this.#lengths]
      this.#starts = new Float64Array(starts.length * 2)
      this.#starts.set(starts)
      this.#lengths = new Uint32Array(lengths.length * 2)
      this.#lengths.set(lengths)
    }
    this.#starts[this.#count] = start
    this.#lengths[this.#count++] = length
  }

  start(passage: number): number {
    return this.#starts[passage]!
  }

  length(passage: number): number {
    return this.#lengths[passage]!
  }
}

function readPassage(value: unknown, path: string, number: number): { id: string; contents: string } {
  const fields = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>
  const contents = contentsOf(fields)
  const id = fields.id ?? number - 1
  if (contents === undefined || !["string", "number"].includes(typeof id)) {
    throw new GigpoError(
      "BAD_DATA",
      `${path}, line ${number} must be an object with an id and the text "contents", or "title" and "text".`,
    )
  }
  return { id: String(id), contents }
}

/** Text of a passage in one of the two common formats: `contents`, or `title` and `text`. */
export function contentsOf({ contents, title, text }: Record<string, unknown>): string | undefined {
  if (typeof contents === "string") return contents
  return typeof title === "string" && typeof text === "string" ? `"${title}"\n${text}` : undefined
}
