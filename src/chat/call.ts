// What is asked for, whichever endpoint it came by.

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** JSON, as it was written. */
  readonly arguments: string
}

export type CallMessage =
  | { readonly role: "system" | "user"; readonly content: string; readonly name?: string }
  | {
      readonly role: "assistant"
      readonly content: string
      readonly reasoning?: string
      readonly toolCalls: readonly ToolCall[]
      readonly name?: string
      /** The reply that it is, where the client names that in place of repeating it. */
      readonly reference?: string
    }
  | { readonly role: "tool"; readonly content: string; readonly toolCallId: string; readonly name?: string }

export interface Tool {
  readonly name: string
  readonly description?: string
  /** JSON Schema. */
  readonly parameters: unknown
  /** Its arguments must satisfy the schema. */
  readonly strict: boolean
  /** Where the schema stands in the request. */
  readonly field: string
  /** What the chat template shows of it: `{ type, function }` as the client wrote it. */
  readonly told: object
}

/** Which tools may, or must, be called. */
export type ToolChoice = "auto" | "none" | "required" | { readonly name: string }

/** What the reply's text must be, and where in the request that stands. */
export type Format =
  | { readonly kind: "text" }
  | { readonly kind: "json"; readonly field: string }
  | { readonly kind: "schema"; readonly schema: unknown; readonly field: string }

export interface Call {
  /** Number of the client that asks, where several share the model; see `SampleRequest`. */
  readonly client?: number | undefined
  readonly model: string
  readonly messages: readonly CallMessage[]
  /** Variables of the chat template, over those that are configured. Default: none. */
  readonly variables?: Readonly<Record<string, unknown>>
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice
  /** Whether one reply may call several tools. */
  readonly parallel: boolean
  readonly format: Format
  readonly maxTokens: number | undefined
  /** Texts before which the reply ends. */
  readonly stop: readonly string[]
  /** Replies to sample. */
  readonly count: number
  readonly seed: number | undefined
  readonly temperature: number | undefined
  readonly logProbs: boolean
  /** Most likely tokens to tell of at each place. */
  readonly topLogProbs: number
  readonly stream: boolean
}
