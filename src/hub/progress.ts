/** Progress of finding and downloading a model. */
export type HubProgress =
  /** Notice for the user, as a sentence. */
  | { readonly kind: "note"; readonly text: string }
  /** Start of a download: number and bytes of all files of the model, and the bytes that are missing. */
  | {
      readonly kind: "start"
      readonly model: string
      readonly files: number
      readonly bytes: number
      readonly missing: number
    }
  /** Bytes downloaded so far, including earlier downloads, of all bytes of the model. */
  | { readonly kind: "bytes"; readonly done: number; readonly total: number }

/** Options of resolving and downloading a model of the Hugging Face Hub. */
export interface HubOptions {
  /** Signal that aborts a download. The next call continues the download. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: HubProgress) => void) | undefined
  /** Whether to download the weights, too; otherwise only configuration and tokenizer. Default true. */
  readonly weights?: boolean
}
