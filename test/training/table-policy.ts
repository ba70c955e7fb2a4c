import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import type {
  AdamWParameters,
  Completion,
  Critic,
  LinearLoss,
  LogProbsOptions,
  LossReport,
  ModelStore,
  NativeLoss,
  OptimizerStepStatistics,
  SampleRequest,
  TokenStatistics,
  TopTokens,
  Trainable,
  ValueLoss,
} from "../../src/engine/engine.ts"
import type { Sequence } from "../../src/engine/sequence.ts"
import type { ChatCodec } from "../../src/tokenizer/chat-codec.ts"
import { GigpoError } from "../../src/util/errors.ts"
import { Random } from "../../src/util/random.ts"
import type { Json } from "../../src/util/state.ts"
import { ofAll } from "../engine/by-row.ts"

const [vocabularySize, contexts] = [128, 2048]

/** An engine in plain TypeScript: a table of logits, one row for what the last three tokens come to, learned by plain descent. */
export class TablePolicy implements Trainable {
  readonly vocabularySize: number = vocabularySize
  readonly maxPositions: number = 400
  readonly deterministic: boolean = true
  readonly losses: readonly NativeLoss["kind"][] = []
  logits: Float64Array = new Float64Array(contexts * vocabularySize)
  steps: number = 0
  /** Of the rows of the table that have any, by where they begin. */
  readonly #gradients: Map<number, Float64Array> = new Map()
  #frozen: Float64Array | undefined

  readonly reference: { freeze(): Promise<void> } = {
    freeze: async () => {
      this.#frozen = this.logits.slice()
    },
  }

  async check(): Promise<readonly string[]> {
    return []
  }

  async sample({ prompt, maxTokens, temperature = 1, stopTokens, key, signal }: SampleRequest): Promise<Completion> {
    await Promise.resolve()
    signal?.throwIfAborted()
    const random = new Random(key)
    const all = [...prompt]
    const logProbs: number[] = []
    for (let i = 0; i < maxTokens; i++) {
      const { p } = this.#distribution(this.logits, all, temperature || 1)
      const drawn = temperature === 0 ? p.indexOf(Math.max(...p)) : draw(p, random.uniform())
      all.push(drawn)
      logProbs.push(Math.log(p[drawn]!))
      if (stopTokens.includes(drawn)) break
    }
    const tokens = Int32Array.from(all.slice(prompt.length))
    const finishReason = stopTokens.includes(tokens.at(-1)!) ? "stop" : "length"
    return { tokens, logProbs: Float32Array.from(logProbs), finishReason }
  }

  async logProbs(
    rows: readonly Sequence[],
    { model, needs = [], top = 0, temperature = 1 }: LogProbsOptions = {},
  ): Promise<TokenStatistics> {
    const table = model === "reference" ? this.#frozen! : this.logits
    let place = 0
    const each = rows.map((row) => {
      const before = sampled(row).map((at) => row.tokens.subarray(0, at))
      const found = before.map((tokens) => this.#distribution(table, tokens, temperature))
      const tokens = sampled(row).map((at) => row.tokens[at]!)
      const partOf = ({ count, tokens: all }: Pick<TopTokens, "count" | "tokens">, places: number) => {
        place += places
        return { count, tokens: all.subarray((place - places) * count, place * count) }
      }
      const apart = (t: number) => {
        const { p: q } = this.#distribution(this.#frozen!, before[t]!, temperature)
        return Math.sqrt(Math.max(1 - found[t]!.p.reduce((sum, p, j) => sum + Math.sqrt(p * q[j]!), 0), 0))
      }
      return {
        logProbs: Float32Array.from(found, ({ p }, i) => Math.log(p[tokens[i]!]!)),
        entropies: Float32Array.from(found, ({ entropy }) => entropy),
        ...(needs.includes("hellinger") && { hellingers: Float32Array.from(found, (_, t) => apart(t)) }),
        ...(needs.includes("top") && { top: topOf(found, typeof top === "number" ? top : partOf(top, tokens.length)) }),
      }
    })
    return ofAll(each)
  }

  /** c (1{j} - p_j) of log p's coefficients and -e p_j (log p_j + H) of the entropy's, over the temperature. */
  async forwardBackward(rows: readonly Sequence[], loss: NativeLoss | LinearLoss): Promise<LossReport> {
    if (loss.kind !== "linear") throw new GigpoError("BAD_ARGUMENT", "A table knows no loss.")
    const { coefficients, entropyCoefficients, top, temperature = 1 } = loss
    let [token, entropies] = [0, 0]
    for (const row of rows) {
      for (const at of sampled(row)) {
        const { p, entropy, start } = this.#distribution(this.logits, row.tokens.subarray(0, at), temperature)
        const [c, e] = [coefficients[token]! / temperature, (entropyCoefficients?.[token] ?? 0) / temperature]
        const gradients = this.#gradients.get(start) ?? new Float64Array(vocabularySize)
        this.#gradients.set(start, gradients)
        for (let j = 0; j < vocabularySize; j++) gradients[j]! += -c * p[j]! - e * p[j]! * (Math.log(p[j]!) + entropy)
        gradients[row.tokens[at]!]! += c
        for (let i = token * (top?.count ?? 0); i < (token + 1) * (top?.count ?? 0); i++) {
          const further = top!.logProbs[i]! / temperature
          for (let j = 0; j < vocabularySize; j++) gradients[j]! -= further * p[j]!
          gradients[top!.tokens[i]!]! += further
        }
        entropies += entropy
        token++
      }
    }
    return { loss: 0, tokens: token, metrics: { "policy/entropy": entropies / token } }
  }

  async optimizerStep({ learningRate, maxGradientNorm = 1 }: AdamWParameters): Promise<OptimizerStepStatistics> {
    const gradientNorm = Math.hypot(...this.gradients)
    const scale = learningRate * Math.min(1, maxGradientNorm / (gradientNorm + 1e-6))
    for (const [start, gradients] of this.#gradients)
      for (let j = 0; j < vocabularySize; j++) this.logits[start + j]! -= scale * gradients[j]!
    this.#gradients.clear()
    this.steps++
    return { gradientNorm, skipped: false }
  }

  async clearGradients(): Promise<void> {
    this.#gradients.clear()
  }

  readonly #critic: TableCritic = new TableCritic()

  async critic(): Promise<TableCritic> {
    return this.#critic
  }

  get gradients(): readonly number[] {
    return [...this.#gradients.values()].flatMap((row) => [...row]).filter((g) => g !== 0)
  }

  readonly store: ModelStore = {
    save: async (directory) => await writeFile(join(directory, "table.bin"), new Uint8Array(this.logits.buffer)),
    checkpoint: async (directory) => {
      await this.store.save(directory)
      return { steps: this.steps }
    },
    restore: async (handle: Json, directory) => {
      this.logits = new Float64Array((await readFile(join(directory, "table.bin"))).slice().buffer)
      this.steps = (handle as { steps: number }).steps
    },
  }

  #distribution(table: Float64Array, before: ArrayLike<number>, temperature: number) {
    const start = contextOf(before) * vocabularySize
    const z = table.subarray(start, start + vocabularySize).map((logit) => logit / temperature)
    const top = z.reduce((a, b) => Math.max(a, b))
    const total = z.reduce((sum, x) => sum + Math.exp(x - top), 0)
    const p = z.map((x) => Math.exp(x - top) / total)
    return { p, start, entropy: -p.reduce((sum, x) => sum + x * Math.log(x), 0) }
  }
}

/** Log-probabilities of the most likely tokens, or of those that are given. */
function topOf(found: readonly { readonly p: Float64Array }[], of: number | Pick<TopTokens, "count" | "tokens">) {
  const count = typeof of === "number" ? of : of.count
  const mostLikely = (p: Float64Array) => [...p.keys()].sort((a, b) => p[b]! - p[a]!).slice(0, count)
  const tokens = typeof of === "number" ? Int32Array.from(found.flatMap(({ p }) => mostLikely(p))) : of.tokens
  const logProbs = Float32Array.from(tokens, (token, i) => Math.log(found[Math.floor(i / count)]!.p[token]!))
  return { count, tokens, logProbs }
}

/** A table of values, one for what the last three tokens come to. */
export class TableCritic implements Critic {
  values: Float64Array = new Float64Array(contexts)
  readonly #gradients: Float64Array = new Float64Array(contexts)

  async predict(rows: readonly Sequence[]): Promise<Float32Array> {
    const contexts = rows.flatMap((row) => sampled(row).map((at) => contextOf(row.tokens.subarray(0, at))))
    return Float32Array.from(contexts, (context) => this.values[context]!)
  }

  async forwardBackward(rows: readonly Sequence[], { clip }: ValueLoss): Promise<LossReport> {
    const places = rows.flatMap((row) => sampled(row).map((at) => contextOf(row.tokens.subarray(0, at))))
    const column = (name: "values" | "returns") =>
      rows.flatMap(({ segments }) => segments.flatMap((segment) => [...segment[name]!]))
    const [old, returns] = [column("values"), column("returns")]
    let [loss, clipped] = [0, 0]
    for (const [i, place] of places.entries()) {
      const [value, wanted] = [this.values[place]!, returns[i]!]
      const held = Math.min(Math.max(value, old[i]! - clip), old[i]! + clip)
      const isClipped = (held - wanted) ** 2 > (value - wanted) ** 2
      loss += (0.5 * Math.max((held - wanted) ** 2, (value - wanted) ** 2)) / places.length
      if (isClipped) clipped++
      else this.#gradients[place]! += (value - wanted) / places.length
    }
    return { loss, tokens: places.length, metrics: { "critic/clip-fraction": clipped / places.length } }
  }

  async optimizerStep({ learningRate }: AdamWParameters): Promise<OptimizerStepStatistics> {
    const gradientNorm = Math.hypot(...this.#gradients)
    for (const [place, gradient] of this.#gradients.entries()) this.values[place]! -= learningRate * gradient
    this.#gradients.fill(0)
    return { gradientNorm, skipped: false }
  }

  async clearGradients(): Promise<void> {
    this.#gradients.fill(0)
  }

  readonly store: ModelStore = {
    save: async (directory) => await writeFile(join(directory, "values.bin"), new Uint8Array(this.values.buffer)),
    checkpoint: async (directory) => {
      await this.store.save(directory)
      return {}
    },
    restore: async (_, directory) => {
      this.values = new Float64Array((await readFile(join(directory, "values.bin"))).slice().buffer)
    },
  }
}

function contextOf(before: ArrayLike<number>): number {
  let context = 0
  for (let i = Math.max(before.length - 3, 0); i < before.length; i++) context = (context * 31 + before[i]!) % contexts
  return context
}

function sampled({ segments }: Sequence): number[] {
  return segments.flatMap(({ start, length }) => Array.from({ length }, (_, i) => start + i))
}

function draw(p: Float64Array, uniform: number): number {
  let left = uniform
  return p.findIndex((share) => {
    left -= share
    return left < 0
  })
}

/** A token a character; 0 ends a reply. A prompt stands backwards, so that its first letters are what is seen last. */
export const characters: ChatCodec = {
  eosTokens: [0],
  encodeChat: async (messages) => ({
    tokens: characters.encode(messages.map(({ content }) => `${content}\n`).join("")).reverse(),
  }),
  encode: (text) => Int32Array.from(text, (character) => character.charCodeAt(0) % vocabularySize),
  decode: (tokens) => String.fromCharCode(...tokens.filter((token) => token !== 0)),
}
