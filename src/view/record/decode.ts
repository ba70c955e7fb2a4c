import { Pace } from "../../pace.ts"
import type { RecordedCandidate, RecordedEpisode, RecordedGroup, RecordedStep } from "../data/recorded.ts"
import { type Numbers, type Unpacked, unpack } from "./packed.ts"
import { type AboutEpisode, type AboutPart, candidatePrefix, detailNames, flags } from "./part.ts"
import { TokenTexts } from "./token-texts.ts"

/**
 * The episodes of a block, those that follow one another and are of one group together, without holding up the event loop. Throws where
 * the bytes are something else.
 */
export async function decodeBlock(bytes: Buffer, iteration: number): Promise<RecordedGroup[]> {
  const decoder = new PartDecoder()
  const groups: { readonly iteration: number; group: number; task: unknown; episodes: RecordedEpisode[] }[] = []
  for (let at = 0; at < bytes.length; ) {
    const part = unpack<AboutPart>(bytes, at)
    const { group, task } = part.about
    if (task !== undefined) groups.push({ iteration, group, task: JSON.parse(task), episodes: [] })
    for await (const episode of decoder.episodes(part)) groups.at(-1)!.episodes.push(episode)
    at = part.end
  }
  return groups
}

type Columns = Unpacked<AboutPart>["arrays"]

/** Reads the parts of one block, in their order. */
class PartDecoder {
  readonly #pace: Pace = new Pace()
  readonly #tokens: TokenTexts = new TokenTexts()
  readonly #texts: (string | number)[] = []
  /** Places of the tokens of the step before. */
  #before: Numbers = new Int32Array(0)
  /** Which of a part's replies that were not acted on comes next, and where its tokens begin. */
  #candidate = { step: 0, token: 0 }

  async *episodes({ about, arrays }: Unpacked<AboutPart>): AsyncGenerator<RecordedEpisode, void, undefined> {
    this.#tokens.add(arrays.tokenLengths!, arrays.tokenBytes as Uint8Array)
    const lines = Buffer.from(arrays.texts as Uint8Array).toString()
    for (const line of lines.split("\n").slice(0, -1)) this.#texts.push(JSON.parse(line))
    const from = { step: 0, token: 0, prompt: 0 }
    this.#candidate = { step: 0, token: 0 }
    for (const { steps, left, stepMetrics, ...episode } of about.episodes)
      yield { ...episode, steps: await this.#steps(arrays, from, steps, left !== true, stepMetrics) }
  }

  /** So many steps from a place in the columns, which moves on. */
  async #steps(
    columns: Columns,
    from: { step: number; token: number; prompt: number },
    count: number,
    isLearned: boolean,
    metrics: AboutEpisode["stepMetrics"],
  ): Promise<RecordedStep[]> {
    const steps: RecordedStep[] = []
    for (let at = 0; at < count; at++, from.step++) {
      if (this.#pace.due()) await this.#pace.rest()
      const { step, token, prompt } = from
      const value = (name: string) => columns[name]![step]!
      const text = (name: string) => this.#texts[value(name)]!
      const [shared, promptTokens, replyTokens] = [value("shared"), value("promptTokens"), value("replyTokens")]
      const said = new Int32Array(promptTokens + replyTokens)
      said.set(this.#before.subarray(0, shared))
      said.set(columns.prompts!.subarray(prompt, prompt + promptTokens - shared), shared)
      said.set(columns.replies!.subarray(token, token + replyTokens), promptTokens)
      this.#before = said
      from.prompt += promptTokens - shared
      from.token += replyTokens
      const perToken = (name: string) => Array.from(columns[name]!.subarray(token, token + replyTokens))
      const candidates = columns.candidates && this.#candidates(columns, value("candidates"))
      const flagged = value("flags")
      const isSkipped = (flagged & flags.skipped) !== 0
      const earned: Columns = isLearned ? columns : {}
      const measured = metrics?.[at]
      steps.push({
        observation: text("observation") as string,
        anchor: text("anchor") as string,
        prompt: this.#tokens.textsOf(said.subarray(0, promptTokens)).join(""),
        promptTokens,
        ...this.#said(said.subarray(promptTokens), perToken, flagged),
        ...(isSkipped && { skipped: true }),
        ...(!isSkipped && earned.advantages && { advantage: value("advantages") }),
        ...(!isSkipped && earned.tokenAdvantages && { advantage: perToken("tokenAdvantages") }),
        action: text("action") as string,
        reward: value("rewards"),
        finishReason: flagged & flags.cutOff ? "length" : "stop",
        stepGroup: value("stepGroups"),
        ...Object.fromEntries(
          detailNames.flatMap((name) => (Number.isFinite(earned[name]?.[step]) ? [[name, value(name)]] : [])),
        ),
        ...(measured && { metrics: measured }),
        ...(flagged & flags.scored && { score: value("scores"), candidates: candidates! }),
        ...(columns.conversation && value("conversation") >= 0 && { conversation: text("conversation") }),
        ...(columns.agent && value("agent") >= 0 && { agent: text("agent") }),
      })
    }
    return steps
  }

  /** The next so many of the replies that were not acted on. */
  #candidates(columns: Columns, count: number): RecordedCandidate[] {
    return Array.from({ length: count }, () => {
      const { step, token } = this.#candidate
      const column = (name: string) => columns[`${candidatePrefix}${name}`]!
      const end = token + column("replyTokens")[step]!
      this.#candidate = { step: step + 1, token: end }
      const perToken = (name: string) => Array.from(column(name).subarray(token, end))
      return {
        ...this.#said(column("replies").subarray(token, end), perToken, column("flags")[step]!),
        action: this.#texts[column("actions")[step]!] as string,
        score: column("scores")[step]!,
      }
    })
  }

  /** A reply, and what is known of its tokens. */
  #said(tokens: Numbers, perToken: (name: string) => number[], flagged: number) {
    return {
      reply: this.#tokens.textsOf(tokens),
      logProbs: perToken("logProbs"),
      ...(flagged & flags.entropies && { entropies: perToken("entropies") }),
      ...(flagged & flags.forced && { forced: perToken("forced") }),
      valid: (flagged & flags.valid) !== 0,
    }
  }
}
