import { existsSync } from "node:fs"
import { join } from "node:path"
import { GigpoError } from "../errors.ts"
import { checkModelFolder } from "../model-files/model-folder.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import type { ChatCodec, Prompt } from "./chat-codec.ts"
import { ChatTemplate, type ChatTemplateLimits } from "./chat-template.ts"
import { createEncoder } from "./encoder.ts"
import { badTokenizer, type JsonObject, readJson, readText, sizeLimits } from "./files.ts"
import { type LibraryTokenizer, loadLibraryTokenizer } from "./library.ts"
import { defaultTemplate, endOfTurnIds, specialTokens } from "./special-tokens.ts"
import { type TokenBytes, tokenBytes } from "./token-bytes.ts"
import { checkTokenizerJson, countIds, idsOf, type TokenizerJson } from "./tokenizer-json.ts"

/** One message of a chat, as chat templates take it. */
export interface ChatMessage {
  readonly role: string
  readonly content: string
  /** Calls of tools that an assistant's message makes: `{ id, type: "function", function: { name, arguments } }`, arguments as an object. */
  readonly tool_calls?: readonly object[]
  /** Which call a tool's message answers. */
  readonly tool_call_id?: string
  readonly reasoning_content?: string
}

export interface RenderChatOptions {
  /** End with the header of an assistant's message, so that the model replies. Default true. */
  readonly addGenerationPrompt?: boolean
  /** More variables for the template, e.g. `{ enable_thinking: false }`. Plain data only. */
  readonly variables?: Readonly<Record<string, unknown>>
}

const limitKeys: KeysOf<ChatTemplateLimits> = { timeoutMs: true, maxLength: true }
const renderKeys: KeysOf<RenderChatOptions> = { addGenerationPrompt: true, variables: true }

const fileNames = [
  "tokenizer.json",
  "tokenizer_config.json",
  "chat_template.jinja",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "generation_config.json",
]

interface Parts {
  readonly directory: string
  readonly json: TokenizerJson
  readonly config: JsonObject
  readonly modelEos: unknown
  readonly template: ChatTemplate | undefined
}

/** Text to token ids and back, and chats to prompts, as the files of a Hugging Face model folder say. */
export class Tokenizer implements ChatCodec {
  readonly directory: string
  /** Highest id + 1. */
  readonly vocabularySize: number
  /** Every id that may end an assistant's turn; stop tokens of sampling. At least one. */
  readonly eosTokens: readonly number[]
  /** Text to ids. Adds no special tokens, but reads those that stand in the text. */
  readonly encode: (text: string) => Int32Array
  readonly #json: TokenizerJson
  readonly #library: LibraryTokenizer
  #tokenBytes: TokenBytes | undefined
  readonly #template: ChatTemplate | undefined
  readonly #specialTokens: Readonly<Record<string, string>>

  /**
   * Reads tokenizer.json, tokenizer_config.json and the chat template (chat_template.jinja, else the one of
   * tokenizer_config.json). Fails with BAD_TOKENIZER where a file is missing or corrupt, with BAD_MODEL where there is no such folder.
   *
   * Chat templates may come from strangers: they run under `limits`. The patterns of tokenizer.json have none: open
   * tokenizers of models that you trust.
   */
  static async open(directory: string, limits: ChatTemplateLimits = {}): Promise<Tokenizer> {
    checkArguments("Tokenizer.open", limits, limitKeys)
    await checkModelFolder(directory)
    const path = (name: string) => join(directory, name)
    const json = await readJson(path("tokenizer.json"), sizeLimits.tokenizer)
    checkTokenizerJson(json, path("tokenizer.json"))
    const config = await readJson(path("tokenizer_config.json"), sizeLimits.config)
    const generation = await readJson(path("generation_config.json"), sizeLimits.config, "optional")
    const model = await readJson(path("config.json"), sizeLimits.config, "optional")
    const ownFile = await readText(path("chat_template.jinja"), sizeLimits.template, "optional")
    const source = ownFile ?? defaultTemplate(config.chat_template)
    const templateFile = path(ownFile === undefined ? "tokenizer_config.json" : "chat_template.jinja")
    const template = source === undefined ? undefined : new ChatTemplate(source, templateFile, limits)
    try {
      await template?.parse()
      return new Tokenizer({
        directory,
        json,
        config,
        modelEos: generation?.eos_token_id ?? model?.eos_token_id,
        template,
      })
    } catch (error) {
      await template?.dispose()
      throw error
    }
  }

  private constructor({ directory, json, config, modelEos, template }: Parts) {
    const path = join(directory, "tokenizer.json")
    this.directory = directory
    this.#json = json
    this.vocabularySize = countIds(json)
    this.#template = template
    this.#specialTokens = specialTokens(config)
    try {
      this.#library = loadLibraryTokenizer(json, config)
      this.encode = createEncoder(this.#library, config)
    } catch (cause) {
      throw badTokenizer(path, `does not describe a tokenizer (${(cause as Error).message})`, cause)
    }
    const idOf = (token: string) => this.#library.token_to_id(token)
    this.eosTokens = endOfTurnIds(idOf, this.#specialTokens.eos_token, modelEos, template?.source)
    if (this.eosTokens.length === 0)
      throw badTokenizer(join(directory, "tokenizer_config.json"), "names no eos_token that tokenizer.json knows")
    const unknown = this.eosTokens.find((id) => this.#library.id_to_token(id) === undefined)
    if (unknown !== undefined)
      throw badTokenizer(
        path,
        `has no token for the end-of-turn id ${unknown} of generation_config.json or config.json`,
      )
  }

  /** Files to copy when a model is saved, so that its folder can be opened again. Full paths. */
  get files(): readonly string[] {
    return fileNames.map((name) => join(this.directory, name)).filter((path) => existsSync(path))
  }

  /** The Jinja source of the chat template, where the model has one. */
  get chatTemplate(): string | undefined {
    return this.#template?.source
  }

  /**
   * Ids to text. Ids without a token (the rows with which some models pad their vocabulary) give nothing, bytes that
   * are no UTF-8 give U+FFFD. `skipSpecial` leaves special tokens out; default false.
   */
  decode(ids: ArrayLike<number>, options: { readonly skipSpecial?: boolean } = {}): string {
    const known = Array.from(ids).filter((id) => this.#library.id_to_token(id) !== undefined)
    if (known.length === 0) return ""
    return this.#library.decode(known, {
      skip_special_tokens: options.skipSpecial ?? false,
      // What the model said, not what it would look like in print.
      clean_up_tokenization_spaces: false,
    })
  }

  /**
   * The text of a chat, as the model's template writes it. Fails with TEMPLATE_TIMEOUT where the template takes too
   * long, with BAD_TOKENIZER where there is none, it refuses the messages or its text is too long.
   */
  async renderChat(messages: readonly ChatMessage[], options: RenderChatOptions = {}): Promise<string> {
    checkArguments("renderChat", options, renderKeys)
    if (this.#template === undefined)
      throw new GigpoError("BAD_TOKENIZER", `${this.directory} has no chat template; add a chat_template.jinja`)
    return await this.#template.render({
      ...this.#specialTokens,
      tools: null,
      documents: null,
      ...options.variables,
      messages,
      add_generation_prompt: options.addGenerationPrompt ?? true,
    })
  }

  /** The token ids of a chat; errors as `renderChat`. */
  async encodeChat(messages: readonly ChatMessage[], options: RenderChatOptions = {}): Promise<Prompt> {
    return { tokens: this.encode(await this.renderChat(messages, options)) }
  }

  /**
   * What text each token stands for, by which replies are held to a grammar. Fails with BAD_TOKENIZER where the tokenizer is not byte-level.
   */
  vocabulary(): TokenBytes {
    const path = join(this.directory, "tokenizer.json")
    this.#tokenBytes ??= tokenBytes(this.#json, this.eosTokens, this.vocabularySize, path)
    return this.#tokenBytes
  }

  /** Fails with BAD_TOKENIZER where some token has no row among the model's `rows`. More rows than tokens are fine. */
  checkVocabulary(rows: number): void {
    if (this.vocabularySize <= rows) return
    const message = `the tokenizer of ${this.directory} gives ids up to ${this.vocabularySize - 1}, but the model has only ${rows} token embeddings; use the tokenizer that the model was made with`
    throw new GigpoError("BAD_TOKENIZER", message)
  }

  /**
   * Fails with BAD_TOKENIZER where some token of this one is another in `other`, so that a model of that would read other texts in the
   * same ids. It may have more.
   */
  checkSameTokens(other: Tokenizer): void {
    const theirs = idsOf(other.#json)
    for (const [token, id] of idsOf(this.#json)) {
      if (theirs.get(token) === id) continue
      const there = theirs.has(token) ? `is ${theirs.get(token)} in` : "is not in"
      throw new GigpoError(
        "BAD_TOKENIZER",
        `The token ${JSON.stringify(token)} is ${id} in ${this.directory}, but ${there} ${other.directory}: take a model with the same tokenizer.`,
      )
    }
  }

  /** Stops the chat template's worker. Not needed for the process to end. */
  async dispose(): Promise<void> {
    await this.#template?.dispose()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }
}
