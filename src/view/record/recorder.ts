import { mkdir } from "node:fs/promises"
import { dirname } from "node:path"
import { GigpoError } from "../../errors.ts"
import { io } from "../../files/io-error.ts"
import { checkArguments } from "../../options/arguments.ts"
import { text } from "../../options/field.ts"
import { readOptions } from "../../options/read.ts"
import { Pace } from "../../pace.ts"
import type { Group } from "../../rollout/hooks.ts"
import { tokenText } from "../../server/dialect.ts"
import type { VoiceCodec } from "../../server/voice.ts"
import type { RunObserver, RunStart } from "../../training/observers.ts"
import { writeEpisodesFile } from "./file.ts"
import { cutRecordBack, episodesPath, pruneRecord } from "./folder.ts"
import { blocksOf, summarize, type ToRecord } from "./iteration.ts"
import { type RecordingOptions, recordingFields } from "./options.ts"

export interface RecordEpisodesOptions extends RecordingOptions {
  /** What the policy's tokens say. */
  readonly tokenizer: Pick<VoiceCodec, "decode" | "vocabulary">
  /** The folder in which `episodes/` is to be. Default: the run's. */
  readonly directory?: string | undefined
  /** Told, once, that recording ended, and once that an iteration was left out. Default: `process.emitWarning`. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/** Tokens of the iterations that wait to be written; an iteration is left out where there are more. */
const mostWaiting = 4 * 1024 * 1024

/**
 * Records the episodes of a run as it goes: `episodes/iteration-N.episodes` in its folder, one file an iteration, for `readEpisodes`.
 * What was recorded of iterations after the one that a run goes on from is removed first, as from metrics.jsonl.
 *
 * The run does not wait for it, and does not end by it: where the disk is full, or fails, recording ends with one warning, and where
 * it is too slow iterations are left out.
 *
 * @throws GigpoError `BAD_ARGUMENT`
 */
export function recordEpisodes(options: RecordEpisodesOptions): RunObserver {
  checkArguments("recordEpisodes", options)
  return new Recorder(options)
}

const fields = {
  ...recordingFields,
  directory: text(undefined, "The folder in which `episodes/` is to be.", { otherwise: "the run's" }),
}

class Recorder implements RunObserver {
  readonly name = "recordEpisodes"
  readonly #options: ReturnType<typeof readOptions<typeof fields>>
  readonly #bytesOf: (token: number) => Uint8Array
  readonly #onWarning: (message: string) => void
  /** Of the run at hand; undefined where none is recorded. */
  #place: { readonly directory: string; readonly leastGroupSize: number } | undefined
  #last: Promise<void> = Promise.resolve()
  #waiting = 0
  #hasSkipped = false

  constructor({ tokenizer, onWarning = (message) => process.emitWarning(message), ...given }: RecordEpisodesOptions) {
    this.#options = readOptions("recordEpisodes", given, fields)
    if (typeof tokenizer?.decode !== "function")
      throw new GigpoError("BAD_ARGUMENT", "recordEpisodes needs the tokenizer that the policy is trained with.")
    this.#bytesOf = rememberedBytes(tokenizer)
    this.#onWarning = onWarning
  }

  async start({ iteration, leastGroupSize, ...run }: RunStart): Promise<void> {
    const directory = this.#options.directory ?? run.directory
    if (directory === undefined)
      throw new GigpoError("BAD_ARGUMENT", "there is no folder to record in: train a run, or give a directory")
    await this.#last // of a run before this one
    this.#place = undefined
    this.#hasSkipped = false
    await cutRecordBack(directory, iteration)
    this.#place = { directory, leastGroupSize }
  }

  /** Comes back before anything is written: what waits is counted here, and not by whoever tells of the run. */
  episodes(iteration: number, groups: readonly Group[], credit: ToRecord["credit"]): void {
    const { every, groups: most = Number.POSITIVE_INFINITY } = this.#options
    if (!this.#place || every === 0 || iteration % every !== 0) return
    const tokens = tokensOf(groups)
    if (this.#waiting > 0 && this.#waiting + tokens > mostWaiting) {
      if (!this.#hasSkipped)
        this.#onWarning(
          `The episodes of iteration ${iteration} are not recorded: the disk is slower than the run. Record fewer of them (episodes.every, episodes.groups).`,
        )
      this.#hasSkipped = true
      return
    }
    this.#waiting += tokens
    const toRecord = { iteration, groups, credit, most, leastGroupSize: this.#place.leastGroupSize }
    this.#last = this.#last.then(() => this.#record(toRecord)).finally(() => (this.#waiting -= tokens))
  }

  async end(): Promise<void> {
    await this.#last
    this.#place = undefined
  }

  async #record(toRecord: ToRecord): Promise<void> {
    if (!this.#place) return
    const { directory } = this.#place
    const path = episodesPath(directory, toRecord.iteration)
    try {
      await io("create", dirname(path), mkdir(dirname(path), { recursive: true }))
      const summary = await new Pace().through(summarize(toRecord))
      await writeEpisodesFile(path, summary, blocksOf(toRecord, this.#bytesOf))
      if (this.#options.keep !== undefined) await pruneRecord(directory, this.#options.keep)
    } catch (error) {
      this.#place = undefined
      const reason = error instanceof Error ? error.message : error
      this.#onWarning(`No more episodes are recorded. ${reason} The run goes on.`)
    }
  }
}

function tokensOf(groups: readonly Group[]): number {
  let tokens = 0
  for (const { episodes } of groups)
    for (const { steps } of episodes) for (const { prompt, reply } of steps) tokens += prompt.length + reply.length
  return tokens
}

/** What each token says, in UTF-8. */
function rememberedBytes(tokenizer: RecordEpisodesOptions["tokenizer"]): (token: number) => Uint8Array {
  const textOf = tokenText(tokenizer)
  const known = new Map<number, Uint8Array>()
  return (token) => {
    const bytes = known.get(token) ?? Uint8Array.from(textOf(token).bytes)
    known.set(token, bytes)
    return bytes
  }
}
