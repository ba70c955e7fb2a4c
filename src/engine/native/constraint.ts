import { compile, type Program } from "../../grammar/compile.ts"
import type { Node } from "../../grammar/node.ts"
import { type NativeGrammar, type NativeVocabulary, native } from "../../native/native.ts"
import { GigpoError } from "../../util/errors.ts"

/** What text each token of a vocabulary stands for; a tokenizer tells. */
export interface Vocabulary {
  readonly bytes: Uint8Array
  /** [tokens + 1]: token i is bytes[offsets[i] … offsets[i + 1]). */
  readonly offsets: Int32Array
  /** Tokens that end a reply. */
  readonly ends: Int32Array
}

/** A constraint as it is kept with rows that were sampled under it. */
export interface WrittenConstraint {
  readonly program: Program
  readonly vocabulary: Vocabulary
}

const known = new WeakMap<Vocabulary, NativeVocabulary>()

/**
 * What sampled text must be: the tokens that a grammar does not allow have probability 0, and the log-probabilities of the others are
 * those of the distribution that is left. Hand it to `sample`, and with the span to training, which then computes the same.
 */
export class Constraint {
  readonly native: NativeGrammar
  readonly #made: WrittenConstraint

  /** @throws GigpoError `BAD_ARGUMENT` where no text is allowed, or the vocabulary cannot say it. */
  constructor(grammar: Node | Program, vocabulary: Vocabulary) {
    const program = "instructions" in grammar ? grammar : compile(grammar)
    this.#made = { program, vocabulary }
    const { Grammar, Vocabulary } = native()
    const { bytes, offsets, ends } = vocabulary
    const tokens = known.get(vocabulary) ?? new Vocabulary(bytes, offsets, ends)
    known.set(vocabulary, tokens)
    this.native = new Grammar(tokens, program.instructions, program.sets)
  }

  /** All that it is made of; `new Constraint(program, vocabulary)` is the same again. */
  toJSON(): WrittenConstraint {
    return this.#made
  }

  /** Instructions of its program. */
  get length(): number {
    return this.#made.program.instructions.length / 3
  }

  /** Tokens that end a text. */
  get ends(): Int32Array {
    return this.#made.vocabulary.ends
  }

  /** Whether these tokens are a text, with what ends it, or the beginning of one. */
  takes(tokens: Int32Array): boolean {
    try {
      this.native.allowed(tokens)
      return true
    } catch (error) {
      if (!GigpoError.is(error) || error.code !== "BAD_ARGUMENT") throw error
      return false
    }
  }
}
