import { Tokenizer } from "@huggingface/tokenizers"

/** What is used of @huggingface/tokenizers, typed here: its own type files do not resolve under `nodenext`, and say less where they do. */
export interface LibraryTokenizer {
  encode(text: string, options: { add_special_tokens: boolean }): { ids: number[] }
  decode(ids: number[], options: { skip_special_tokens: boolean; clean_up_tokenization_spaces: boolean }): string
  token_to_id(token: string): number | undefined
  id_to_token(id: number): string | undefined
  get_added_tokens_decoder(): Map<number, LibraryAddedToken>
  readonly normalizer: ((text: string) => string) | null
  /** `tokenizers` are the steps of a sequence. */
  readonly pre_tokenizer: { readonly tokenizers?: readonly LibraryPreTokenizer[] } | null
  /** Pre-tokens to tokens. */
  readonly model: ((pieces: string[]) => string[]) & {
    readonly fuse_unk: boolean
    readonly tokens_to_ids: ReadonlyMap<string, number>
  }
}

interface LibraryAddedToken {
  readonly id: number
  readonly content: string
  readonly lstrip: boolean
  readonly rstrip: boolean
  readonly normalized: boolean
}

interface LibraryPreTokenizer {
  readonly config?: { readonly type: string }
  /** One text, and a list of pieces. */
  pre_tokenize_text(text: string): string[]
  pre_tokenize(pieces: readonly string[]): string[]
}

export function loadLibraryTokenizer(json: object, config: object): LibraryTokenizer {
  return new Tokenizer(json, config) as unknown as LibraryTokenizer
}
