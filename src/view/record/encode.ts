import { joined } from "../../joined.ts"
import type { Pace } from "../../pace.ts"
import type { EpisodeStep } from "../../rollout/episode.ts"
import { type Numbers, pack } from "./packed.ts"
import { type AboutPart, aboutEpisode, earned, type Recordable } from "./part.ts"

// The parts of a block, as `decode.ts` reads them: some episodes of a group each. Tokens, and texts that repeat, stand once in a block, in the part in
// which they come first, and elsewhere as their places; so does the beginning of a prompt that goes on from the step before it.

/** Makes the parts of one block, in their order. */
export class BlockEncoder {
  readonly #bytesOf: (token: number) => Uint8Array
  readonly #pace: Pace
  readonly #tokens: Table<number> = new Table()
  readonly #texts: Table<string | number> = new Table()
  /** The tokens of the step before. */
  #before: readonly [prompt: Int32Array, reply: Int32Array] = [new Int32Array(0), new Int32Array(0)]
  #group: number | undefined

  /** @param bytesOf the text of a token, in UTF-8; asked once for each token of a block */
  constructor(bytesOf: (token: number) => Uint8Array, pace: Pace) {
    this.#bytesOf = bytesOf
    this.#pace = pace
  }

  /** @param recordables at least one, of one group */
  async part(recordables: readonly Recordable[]): Promise<Buffer> {
    const [{ group, task }] = recordables as [Recordable]
    const steps = recordables.flatMap(({ episode }) => episode.steps)
    const columns = { ...(await this.#said(steps)), ...(await this.#done(steps)), ...earned(recordables) }
    const about: AboutPart = {
      group,
      ...(group !== this.#group && { task }),
      episodes: recordables.map(aboutEpisode),
    }
    this.#group = group
    return pack(about, { ...(await this.#freshTokens()), ...(await this.#freshTexts()), ...columns })
  }

  /** Prompts and replies, as places of tokens. */
  async #said(steps: readonly EpisodeStep[]): Promise<Record<string, Numbers>> {
    const place = (id: number) => this.#tokens.place(id)
    const shared = new Int32Array(steps.length)
    const prompts: Int32Array[] = []
    const replies: Int32Array[] = []
    for (const [at, { prompt, reply }] of steps.entries()) {
      shared[at] = sharedTokens(prompt, this.#before)
      this.#before = [prompt, reply]
      prompts.push(prompt.subarray(shared[at]).map(place))
      replies.push(reply.map(place))
      if (this.#pace.due()) await this.#pace.rest()
    }
    const places = (parts: readonly Int32Array[]) =>
      this.#tokens.size > 0x10000 ? joined(Int32Array, parts) : joined(Uint16Array, parts)
    const told = steps.some(({ entropies }) => entropies)
    return {
      shared,
      promptTokens: Int32Array.from(steps, ({ prompt }) => prompt.length),
      replyTokens: Int32Array.from(steps, ({ reply }) => reply.length),
      prompts: places(prompts),
      replies: places(replies),
      logProbs: joined(
        Float32Array,
        steps.map(({ logProbs }) => logProbs),
      ),
      ...(told && {
        entropies: joined(
          Float32Array,
          steps.map(({ entropies, reply }) => entropies ?? new Float32Array(reply.length)),
        ),
      }),
    }
  }

  /** What was observed and done. */
  async #done(steps: readonly EpisodeStep[]): Promise<Record<string, Numbers>> {
    const texts = {
      observation: new Int32Array(steps.length),
      anchor: new Int32Array(steps.length),
      action: new Int32Array(steps.length),
    }
    for (const [at, { observation, action }] of steps.entries()) {
      texts.observation[at] = this.#texts.place(observation.text)
      texts.anchor[at] = this.#texts.place(observation.anchor)
      texts.action[at] = this.#texts.place(action)
      if (this.#pace.due()) await this.#pace.rest()
    }
    const named = (["conversation", "agent"] as const).flatMap((key) => {
      if (steps.every((step) => step[key] === undefined)) return []
      return [[key, Int32Array.from(steps, ({ [key]: name }) => (name === undefined ? -1 : this.#texts.place(name)))]]
    })
    return { ...texts, ...Object.fromEntries(named), rewards: Float64Array.from(steps, ({ reward }) => reward) }
  }

  async #freshTokens(): Promise<Record<string, Numbers>> {
    const ids = this.#tokens.takeFresh()
    const bytes: Uint8Array[] = []
    for (const id of ids) {
      bytes.push(this.#bytesOf(id))
      if (this.#pace.due()) await this.#pace.rest()
    }
    return {
      tokenIds: Int32Array.from(ids),
      tokenLengths: Int32Array.from(bytes, ({ length }) => length),
      tokenBytes: joined(Uint8Array, bytes),
    }
  }

  /** As lines of JSON, in which any text survives. */
  async #freshTexts(): Promise<Record<string, Numbers>> {
    const lines: Buffer[] = []
    for (const text of this.#texts.takeFresh()) {
      lines.push(Buffer.from(`${JSON.stringify(text)}\n`))
      if (this.#pace.due()) await this.#pace.rest()
    }
    return { texts: new Uint8Array(Buffer.concat(lines)) }
  }
}

/** Numbers things in the order in which they first occur. */
class Table<Key> {
  readonly #places: Map<Key, number> = new Map()
  #fresh: Key[] = []

  get size(): number {
    return this.#places.size
  }

  place(key: Key): number {
    const known = this.#places.get(key)
    if (known !== undefined) return known
    this.#fresh.push(key)
    const place = this.#places.size
    this.#places.set(key, place)
    return place
  }

  /** What has been met since it was asked last. */
  takeFresh(): Key[] {
    const fresh = this.#fresh
    this.#fresh = []
    return fresh
  }
}

function sharedTokens(prompt: Int32Array, before: readonly Int32Array[]): number {
  let count = 0
  for (const tokens of before) {
    const most = Math.min(tokens.length, prompt.length - count)
    for (let at = 0; at < most; at++) if (tokens[at] !== prompt[count + at]) return count + at
    count += most
  }
  return count
}
