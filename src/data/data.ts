import type { Sequence } from "../engine/rows.ts"
import type { ChatCodec } from "../tokenizer/chat-codec.ts"

/** What is learned together: one transcript, one pair, one recorded episode. */
export interface Example {
  /** Where it stands, for messages: "line 3". */
  readonly place: string
  /** A conversation that only grows is one row of many spans. Spans are what is learned. */
  readonly rows: readonly Sequence[]
  /** Of a preference pair what was rejected; `rows` is then what was chosen. */
  readonly rejected?: readonly Sequence[]
}

/** How a source is read. */
export interface DataContext {
  /** The learner's own: its chat template writes the rows. */
  readonly tokenizer: ChatCodec
  /** Which replies of a transcript are learned, where the transcript does not say. */
  readonly replies: "all" | "last"
  /** Of recorded episodes those alone that succeeded. */
  readonly successes: boolean
  readonly signal?: AbortSignal | undefined
  readonly onWarning: (message: string) => void
}

/** What is cloned in place of an environment's expert. It is read whole, before anything is touched. */
export interface TrainingData {
  /** For messages: its path, say. */
  readonly name: string
  examples(context: DataContext): AsyncIterable<Example>
}

/** What is wrong with a source, to be said after what it is called; undefined where it is one. */
export function dataProblem(value: unknown): string | undefined {
  if (typeof value === "string" && value.trim() !== "") return undefined
  const { name, examples } = (value ?? {}) as Partial<TrainingData>
  if (typeof name === "string" && typeof examples === "function") return undefined
  return "must be the path of a JSON Lines file, or an object with name and examples(context)"
}
