import { existsSync } from "node:fs"
import { join } from "node:path"
import { checkIntact } from "../files/intact.ts"
import { resolveModel } from "../hub/resolve-model.ts"
import { checkGenerationKeys } from "../model-files/config-keys.ts"
import { templateFolder, tokenizerFiles } from "../model-files/copied-files.ts"
import { checkModelFolder } from "../model-files/model-folder.ts"
import { checkArguments, type KeysOf } from "../options/arguments.ts"
import { readOptions } from "../options/read.ts"
import { GigpoError } from "../util/errors.ts"
import type { BpeTokenizer } from "./bpe/bpe-tokenizer.ts"
import { openBpe } from "./bpe/open.ts"
import type { ChatCodec, Prompt } from "./chat-codec.ts"
import { type ChatOptions, chatFields, checkVariables } from "./chat-options.ts"
import { ChatTemplate, type ChatTemplateLimits } from "./chat-template.ts"
import { ChatWriter } from "./chat-writer.ts"
import { checkTokenizerKeys } from "./config-keys.ts"
import type { Encode, EncodeInPieces } from "./encoder.ts"
import { badTokenizer, type JsonObject, readJson, sizeLimits } from "./files.ts"
import { wallClock } from "./jinja/strftime.ts"
import type { AddedToken } from "./marks.ts"
import { endOfTurnIds, specialTokens } from "./special-tokens.ts"
import { readTemplates, templateFiles } from "./template-files.ts"
import { type TokenBytes, tokenBytes } from "./token-bytes.ts"
import { checkTokenizerJson, countIds, idsOf, type TokenizerJson } from "./tokenizer-json.ts"

/** One message of a chat, as chat templates take it. */
export interface ChatMessage {
  readonly role: string
  readonly content: string
  /** Who speaks, or which tool answers. */
  readonly name?: string
  /** Calls of tools that an assistant's message makes: `{ id, type: "function", function: { name, arguments } }`, arguments as an object. */
  readonly tool_calls?: readonly object[]
  /** Which call a tool's message answers. */
  readonly tool_call_id?: string
  readonly reasoning_content?: string
}

/** Options of a tokenizer's `renderChat`. */
export interface RenderChatOptions {
  /** End with the header of an assistant's message, so that the model replies. Default true. */
  readonly addGenerationPrompt?: boolean
  /** More variables for the template, e.g. `{ enable_thinking: false }`. Plain data only. */
  readonly variables?: Readonly<Record<string, unknown>>
}

/** Options of `Tokenizer`. */
export interface TokenizerOptions extends ChatTemplateLimits {
  /** What the chat template is given beside the messages. */
  readonly chat?: ChatOptions | undefined
}

const openKeys: KeysOf<TokenizerOptions> = { timeoutMs: true, maxLength: true, chat: true }
const renderKeys: KeysOf<RenderChatOptions> = { addGenerationPrompt: true, variables: true }

/** Names of the templates that are used: without and with tools. */
const usedTemplates = ["default", "tool_use"] as const

interface Parts {
  readonly directory: string
  readonly json: TokenizerJson
  readonly config: JsonObject
  readonly modelEos: unknown
  readonly templates: ReadonlyMap<string, ChatTemplate>
  readonly chat: ChatOptions
}

/** Text to token ids and back, and chats to prompts, as the files of a Hugging Face model folder say. */
export class Tokenizer implements ChatCodec {
  readonly directory: string
  /** Highest id + 1. */
  readonly vocabularySize: number
  /** Every id that may end an assistant's turn; stop tokens of sampling. At least one. */
  readonly eosTokens: readonly number[]
  /**
   * Text to ids. Adds no special tokens, but reads those in the text, except where they begin at `literal`
   * UTF-16 indices.
   */
  readonly encode: Encode
  /** `encode` for texts of any length in a process that has other work: run by `Pace.through`. */
  readonly encodeInPieces: EncodeInPieces
  readonly #json: TokenizerJson
  readonly #bpe: BpeTokenizer
  readonly #addedTokens: readonly AddedToken[]
  #tokenBytes: TokenBytes | undefined
  readonly #templates: ReadonlyMap<string, ChatTemplate>
  readonly #specialTokens: Readonly<Record<string, string>>
  readonly #variables: Readonly<Record<string, unknown>>
  #now: string | undefined

  /**
   * Reads tokenizer.json, tokenizer_config.json and the chat templates (chat_template.jinja and
   * additional_chat_templates, else those of tokenizer_config.json). Chats with tools are written by the one named
   * `tool_use` where there is one, as transformers does. Fails with BAD_TOKENIZER where a file is missing or corrupt, with BAD_MODEL where there is no such folder.
   *
   * A name on the Hugging Face Hub (owner/name) stands for its folder, as `resolveModel` finds it.
   *
   * The files may come from strangers. Chat templates run under limits of time and size. tokenizer.json has at most 16 normalizers,
   * pre-tokenizers and decoders each, which make at most 64 characters of one. Its patterns take linear time, or at most a second each
   * time: then `encode` and `decode` fail with BAD_TOKENIZER.
   */
  static async open(named: string, options: TokenizerOptions = {}): Promise<Tokenizer> {
    checkArguments("Tokenizer.open", options, openKeys)
    const { chat, ...limits } = options
    const given = readOptions("Tokenizer.open: chat", chat, chatFields)
    const directory = await resolveModel(named, { weights: false })
    await checkModelFolder(directory)
    await checkIntact(directory, "tokenizer")
    const path = (name: string) => join(directory, name)
    const json = await readJson(path("tokenizer.json"), sizeLimits.tokenizer)
    checkTokenizerJson(json, path("tokenizer.json"))
    const config = await readJson(path("tokenizer_config.json"), sizeLimits.config)
    checkTokenizerKeys(path("tokenizer_config.json"), config)
    const generation = await readJson(path("generation_config.json"), sizeLimits.config, "optional")
    if (generation) checkGenerationKeys(path("generation_config.json"), generation)
    const model = await readJson(path("config.json"), sizeLimits.config, "optional")
    const templates = new Map<string, ChatTemplate>()
    for (const [name, { source, file }] of await readTemplates(directory, config))
      templates.set(name, new ChatTemplate(source, file, limits))
    try {
      for (const name of usedTemplates) await templates.get(name)?.parse()
      checkVariables(given.variables ?? {}, usedTemplates.map((name) => templates.get(name)?.source).join("\n"))
      return new Tokenizer({
        directory,
        json,
        config,
        modelEos: generation?.eos_token_id ?? model?.eos_token_id,
        templates,
        chat: given,
      })
    } catch (error) {
      await disposeAll(templates)
      throw error
    }
  }

  private constructor({ directory, json, config, modelEos, templates, chat }: Parts) {
    const path = join(directory, "tokenizer.json")
    this.directory = directory
    this.#templates = templates
    this.#variables = chat.variables ?? {}
    this.#now = chat.now
    this.#specialTokens = specialTokens(config)
    this.#bpe = openBpe(json, config, path)
    this.#json = { ...json, added_tokens: this.#bpe.addedTokens }
    this.vocabularySize = countIds(this.#json)
    this.#addedTokens = this.#bpe.addedTokens.map(({ content, special = false }) => ({ content, special }))
    this.encode = (text, literal) => this.#bpe.encode(text, literal)
    this.encodeInPieces = (text, options) => this.#bpe.encodeInPieces(text, options)
    const idOf = (token: string) => this.#bpe.tokenToId(token)
    if (!isIds(modelEos))
      throw badTokenizer(
        directory,
        `has an eos_token_id in generation_config.json or config.json that is no id and no list of ids: ${JSON.stringify(modelEos)}`,
      )
    this.eosTokens = endOfTurnIds(idOf, this.#specialTokens.eos_token, modelEos, this.chatTemplate)
    if (this.eosTokens.length === 0)
      throw badTokenizer(join(directory, "tokenizer_config.json"), "names no eos_token that tokenizer.json knows")
    const unknown = this.eosTokens.find((id) => !this.#bpe.has(id))
    if (unknown !== undefined)
      throw badTokenizer(
        path,
        `has no token for the end-of-turn id ${unknown} of generation_config.json or config.json`,
      )
  }

  /** Files to copy when a model is saved, so that its folder can be opened again. Full paths. */
  get files(): readonly string[] {
    const files = tokenizerFiles.map((name) => join(this.directory, name)).filter((path) => existsSync(path))
    return [...files, ...templateFiles(this.directory).map((name) => join(this.directory, templateFolder, name))]
  }

  /** Tokens that `encode` reads within text. */
  get addedTokens(): readonly AddedToken[] {
    return this.#addedTokens
  }

  /** The Jinja source of the chat template, where the model has one. */
  get chatTemplate(): string | undefined {
    return this.#templates.get("default")?.source
  }

  /** Source of the template that chats with tools are written by: the one named `tool_use`, else the default. */
  get toolTemplate(): string | undefined {
    return (this.#templates.get("tool_use") ?? this.#templates.get("default"))?.source
  }

  /**
   * Ids to text. Ids without a token (the rows with which some models pad their vocabulary) give nothing, bytes that
   * are no UTF-8 give U+FFFD. `skipSpecial` leaves special tokens out; default false.
   */
  decode(ids: ArrayLike<number>, options: { readonly skipSpecial?: boolean } = {}): string {
    return this.#bpe.decode(ids, options.skipSpecial ?? false)
  }

  /**
   * The text of a chat, as the model's template writes it, whatever the template leaves out: `encodeChat` makes prompts.
   * Fails with TEMPLATE_TIMEOUT where the template takes too
   * long, with BAD_TOKENIZER where there is none, it refuses the messages or its text is too long.
   */
  async renderChat(messages: readonly ChatMessage[], options: RenderChatOptions = {}): Promise<string> {
    checkArguments("renderChat", options, renderKeys)
    const tools = options.variables?.tools
    const variables = {
      ...this.#specialTokens,
      ...{ tools: null, documents: null },
      ...this.#variables,
      ...options.variables,
      ...{ messages, add_generation_prompt: options.addGenerationPrompt ?? true },
    }
    const template = this.#templateFor(Array.isArray(tools) && tools.length > 0)
    return await template.render(variables, { now: this.#now ?? wallClock(new Date()) })
  }

  /** The date that templates write: the one of `chat.now` or of `keepDate`; undefined where it is that of each render. */
  get date(): string | undefined {
    return this.#now
  }

  /** Has templates write this date from now on, unless there is one already. Returns the date in force. */
  keepDate(now: string): string | undefined {
    if (!usedTemplates.some((name) => this.#templates.get(name)?.source.includes("strftime_now"))) return undefined
    this.#now ??= now
    return this.#now
  }

  #templateFor(tools: boolean): ChatTemplate {
    const template = (tools ? this.#templates.get("tool_use") : undefined) ?? this.#templates.get("default")
    if (template) return template
    const others = [...this.#templates.keys()]
    const has = others.length === 0 ? "no chat template" : `the chat templates ${others.join(", ")} and no default`
    throw new GigpoError("BAD_TOKENIZER", `${this.directory} has ${has}; add a chat_template.jinja`)
  }

  /**
   * The token ids of a chat, as transformers has them where no content holds the text of an added token. Contents are
   * text: what looks like a control token in them is encoded as plain text. Fails as `renderChat`, and with
   * BAD_TOKENIZER where the template leaves out something of the chat, by its name.
   */
  async encodeChat(messages: readonly ChatMessage[], options: RenderChatOptions = {}): Promise<Prompt> {
    checkArguments("encodeChat", options, renderKeys)
    const { variables, addGenerationPrompt = true } = options
    const writer = await ChatWriter.of(this, messages, variables)
    return { tokens: await writer.encodePaced(await writer.write({ addGenerationPrompt })) }
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
    await disposeAll(this.#templates)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }
}

async function disposeAll(templates: ReadonlyMap<string, ChatTemplate>): Promise<void> {
  await Promise.all([...templates.values()].map((template) => template.dispose()))
}

/** Whether a configuration's eos_token_id is none, an id, or a list of ids. */
function isIds(value: unknown): boolean {
  const isId = (id: unknown) => Number.isInteger(id) && (id as number) >= 0
  return value === undefined || value === null || (Array.isArray(value) ? value.every(isId) : isId(value))
}
