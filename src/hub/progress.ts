/** Progress of finding and downloading a model. */
export type HubProgress =
  /** Something that a user should know, in a sentence. */
  | { readonly kind: "note"; readonly text: string }
  /** A download begins: all files of the model, and what of them is missing. */
  | {
      readonly kind: "start"
      readonly model: string
      readonly files: number
      readonly bytes: number
      readonly missing: number
    }
  /** Bytes that are there of those of the start. */
  | { readonly kind: "bytes"; readonly done: number; readonly total: number }

export interface HubOptions {
  /** Aborts a download; the next call continues it. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: HubProgress) => void) | undefined
  /** Whether the weights are needed; without, configuration and tokenizer alone are downloaded. Default true. */
  readonly weights?: boolean
}
