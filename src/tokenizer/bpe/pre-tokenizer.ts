import type { Pieces } from "../../util/pace.ts"
import { isObject, type JsonObject } from "../files.ts"
import { toByteCharacters } from "./byte-characters.ts"
import { classSource } from "./code-points.ts"
import {
  isBoolean,
  isCharacter,
  isList,
  isString,
  kindOf,
  oneOf,
  optional,
  readFields,
  Unsupported,
  unsupportedKind,
} from "./fields.ts"
import { atMostSteps } from "./limits.ts"
import { byteLevelPattern } from "./linear-patterns.ts"
import { Pattern } from "./pattern.ts"
import { readPattern } from "./read-pattern.ts"
import { type Behavior, behaviors, createSplit } from "./split.ts"
import { digits, punctuation, whiteSpace } from "./unicode.ts"

/** Step that splits a piece. `first`: whether the piece is at the beginning of the whole text. */
export type PreTokenizerStep = (piece: string, first: boolean) => Pieces<readonly string[]>

/**
 * Steps of the pre-tokenizer of tokenizer.json, in order. Throws Unsupported for an unsupported step.
 *
 * @param changed - whether an earlier step changes or removes text
 */
export function createPreTokenizer(json: unknown, changed: boolean): PreTokenizerStep[] {
  const kinds = atMostSteps(kindsOf(json), "pre-tokenizers")
  // Each step writes bytes as characters, and a second one would encode the bytes of these characters.
  if (kinds.filter((kind) => kind === "ByteLevel").length > 1)
    throw new Unsupported("has several pre-tokenizers ByteLevel")
  return readSteps(json, changed)
}

function kindsOf(json: unknown): unknown[] {
  if (!isObject(json)) return []
  return isList(json.pretokenizers) ? json.pretokenizers.flatMap(kindsOf) : [json.type]
}

function readSteps(json: unknown, changed: boolean): PreTokenizerStep[] {
  if (json === null || json === undefined) return []
  const kind = kindOf(json, "pre-tokenizer")
  const where = `the pre-tokenizer ${kind}`
  const behavior = oneOf(...behaviors)
  switch (kind) {
    case "Sequence": {
      const { pretokenizers } = readFields(json, where, { type: isString, pretokenizers: isList })
      const removing = pretokenizers.findIndex((step) => isObject(step) && removes(step))
      return pretokenizers.flatMap((step, i) => readSteps(step, changed || (removing >= 0 && i > removing)))
    }
    case "Split": {
      const guards = { type: isString, pattern: isAny, behavior, invert: isBoolean }
      const { pattern, behavior: kept, invert } = readFields(json, where, guards)
      return [createSplit(readPattern(pattern, where), kept, invert)]
    }
    case "ByteLevel": {
      const guards = {
        type: isString,
        add_prefix_space: isBoolean,
        trim_offsets: isBoolean,
        use_regex: optional(isBoolean),
      }
      return createByteLevel(readFields(json, where, guards))
    }
    case "Digits": {
      const { individual_digits: single } = readFields(json, where, { type: isString, individual_digits: isBoolean })
      return [createSplit(classPattern(digits()), single ? "Isolated" : "Contiguous", false)]
    }
    case "Punctuation": {
      const fields = readFields(json, where, { type: isString, behavior: optional(behavior) })
      return [createSplit(classPattern(punctuation()), fields.behavior ?? "Isolated", false)]
    }
    case "WhitespaceSplit":
      readFields(json, where, { type: isString })
      return [createSplit(classPattern(whiteSpace), "Removed", false)]
    case "Metaspace": {
      const fields = readMetaspace(json, where)
      // The library uses the position of a piece in the original text.
      if (changed && fields.scheme === "first")
        throw new Unsupported(`has ${where} with prepend_scheme first behind a step that changes or removes text`)
      return [createMetaspace(fields)]
    }
    default:
      throw unsupportedKind(json, "pre-tokenizer")
  }
}

function removes({ type, behavior }: JsonObject): boolean {
  return behavior === "Removed" || type === "WhitespaceSplit"
}

const isAny = (_value: unknown): _value is unknown => true

function classPattern(set: readonly number[]): Pattern {
  return new Pattern(new RegExp(classSource(set), "gu"))
}

interface ByteLevelFields {
  readonly add_prefix_space: boolean
  readonly use_regex: boolean | null | undefined
}

function createByteLevel({ add_prefix_space: prefix, use_regex: cut }: ByteLevelFields): PreTokenizerStep[] {
  const steps: PreTokenizerStep[] = []
  if (prefix) steps.push(changing((piece) => (piece.startsWith(" ") ? piece : ` ${piece}`)))
  if (cut ?? true) steps.push(createSplit(Pattern.expression(byteLevelPattern), "Isolated", false))
  steps.push(changing(toByteCharacters))
  return steps
}

/** Step that changes a piece without splitting it. */
function changing(change: (piece: string) => string): PreTokenizerStep {
  // biome-ignore lint/correctness/useYield: it has one piece
  return function* (piece) {
    return [change(piece)]
  }
}

export interface Metaspace {
  readonly replacement: string
  readonly scheme: "first" | "always" | "never"
  readonly split: boolean
}

/** Fields of a Metaspace, which may be a pre-tokenizer or a decoder. */
export function readMetaspace(json: unknown, where: string): Metaspace {
  const fields = readFields(json, where, {
    type: isString,
    replacement: isCharacter,
    add_prefix_space: optional(isBoolean),
    prepend_scheme: optional(oneOf("first", "always", "never")),
    split: optional(isBoolean),
    str_rep: optional(isString),
  })
  const scheme = fields.prepend_scheme ?? "always"
  if (fields.add_prefix_space === false && scheme !== "never")
    throw new Unsupported(`says add_prefix_space false and prepend_scheme ${scheme} for ${where}`)
  return { replacement: fields.replacement, scheme, split: fields.split ?? true }
}

function createMetaspace({ replacement, scheme, split }: Metaspace): PreTokenizerStep {
  const cut = split ? createSplit(Pattern.literal(replacement), "MergedWithNext" satisfies Behavior, false) : undefined
  return function* (piece, first) {
    const replaced = piece.replaceAll(" ", () => replacement)
    const prepends = scheme === "always" || (scheme === "first" && first)
    const text = prepends && !replaced.startsWith(replacement) ? replacement + replaced : replaced
    return cut ? yield* cut(text) : [text]
  }
}
