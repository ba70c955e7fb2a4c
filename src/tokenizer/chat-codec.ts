import type { Message } from "../environment/environment.ts"

/** A prompt as an engine takes it. */
export interface Prompt {
  readonly tokens: Int32Array
  /** What belongs to the prompt and is no token (images), in whatever form the engine takes it. */
  readonly attachments?: readonly unknown[]
}

/** Text to token ids and back, for one model. `Tokenizer` is one. */
export interface ChatCodec {
  /** Sampling ends after any of these; the first ends an expert's reply. */
  readonly eosTokens: readonly number[]
  /** The messages and the opening of the assistant's turn. */
  encodeChat(messages: readonly Message[]): Promise<Prompt>
  /** The tokens of a reply, without its end. */
  encode(text: string): Int32Array
  /** A reply as text, without special tokens where `skipSpecial`. */
  decode(tokens: Int32Array, options?: { readonly skipSpecial?: boolean }): string
  /**
   * Has prompts show this date (a local time without a zone) from now on, unless a date was set before. Returns the date
   * in force; undefined where prompts show none.
   */
  keepDate?(now: string): string | undefined
  /** Throws `BAD_TOKENIZER` where its ids do not fit a model of so many tokens. */
  checkVocabulary?(size: number): void
  /** Its files, to be put beside saved weights. */
  readonly files?: readonly string[]
}
