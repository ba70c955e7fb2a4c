import type { GigpoError } from "../../util/errors.ts"
import type { ConfigJson } from "../config-fields.ts"
import type { ModelConfig } from "../model-config.ts"
import type { GgufValue } from "./metadata.ts"
import type { TypedValue } from "./write.ts"

/** Access to the metadata of an architecture, by keys without its name. */
export interface GgufKeys {
  /** A numeric key. Throws `BAD_MODEL` for another type, and for an array of different numbers. */
  number(key: string): number | undefined
  get(key: string): GgufValue | undefined
  /** Creates a `BAD_MODEL` error that names the file. */
  fail(what: string): GigpoError
}

/** Conventions of one architecture in GGUF files. */
export interface GgufConventions {
  /** `general.architecture` of the files. */
  readonly name: string
  /**
   * Whether the rows of the query and key projections are stored for rotary positions on neighboring pairs. Hugging Face pairs
   * column i with column i + size / 2 of a head; llama.cpp's converter interleaves the two halves for Llama and what is made like it.
   */
  readonly interleaved: boolean
  /** Number that is added to the weights of norms in a file. */
  readonly normOffset?: 1
  /** Period of the layers that llama.cpp does not rotate. Default: it rotates all. */
  readonly notRotatedEvery?: number
  /** Tensors of a layer with other names than usual. */
  readonly layerTensors?: Readonly<Record<string, string>>
  /** Keys that only this architecture has. */
  readonly keys?: readonly string[]
  /** Rotary base where a file does not state it. Default 10,000. */
  readonly ropeTheta?: number
  /** Token that ends a turn, where a file does not state it. */
  readonly endOfTurn?: string
  /** Returns further fields of config.json; undefined removes one. */
  config?(keys: GgufKeys): ConfigJson
  /** Returns further metadata. Throws `BAD_MODEL` if llama.cpp would compute the model otherwise. */
  metadata?(config: ModelConfig): Readonly<Record<string, TypedValue>>
}
