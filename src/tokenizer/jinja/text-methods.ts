import { index, text } from "./arguments.ts"
import { fail } from "./errors.ts"
import { limited, reserve, step } from "./limits.ts"
import { isPrintable } from "./print.ts"
import { splitEnd, splitStart } from "./split.ts"
import * as unicode from "./unicode.ts"
import { iterate, Markup, Tuple, textLength, truthy, typeName, type Value } from "./values.ts"

type Optional = Value | undefined

/** Part of a text between two code point indices, with its start; undefined if the start is after the end of the text. */
function part(self: string, start: Optional, stop: Optional): { chars: string[]; from: number } | undefined {
  const chars = Array.from(self)
  const place = (at: Optional, whole: number) => {
    if (at === undefined || at === null) return whole
    const number = index(at)
    return number < 0 ? Math.max(number + chars.length, 0) : number
  }
  const [from, to] = [place(start, 0), Math.min(place(stop, chars.length), chars.length)]
  return from > to ? undefined : { chars: chars.slice(from, to), from }
}

function find(self: string, wanted: Value, start: Optional, stop: Optional, last: boolean): bigint {
  const needle = text(wanted)
  const within = part(self, start, stop)
  if (within === undefined) return -1n
  const hay = within.chars.join("")
  const at = last ? hay.lastIndexOf(needle) : hay.indexOf(needle)
  return at < 0 ? -1n : BigInt(within.from + textLength(hay.slice(0, at)))
}

function found(self: string, wanted: Value, start: Optional, stop: Optional, last: boolean): bigint {
  const at = find(self, wanted, start, stop, last)
  return at < 0n ? fail("ValueError", "substring not found") : at
}

function touches(
  self: string,
  wanted: Value,
  start: Optional,
  stop: Optional,
  name: "startsWith" | "endsWith",
): boolean {
  const options = (wanted instanceof Tuple ? wanted.items : [wanted]).map(text)
  const hay = part(self, start, stop)?.chars.join("")
  return hay !== undefined && options.some((option) => hay[name](option))
}

/** str.replace; a negative count means no limit. */
export function replaceText(self: string, old: string, fresh: string, count: number): string {
  const pieces = old === "" ? ["", ...self] : self.split(old)
  if (old === "") pieces.push("")
  const times = count < 0 ? pieces.length - 1 : Math.min(count, pieces.length - 1)
  reserve(self.length + times * Math.max(fresh.length - old.length, 0))
  const head = pieces.slice(0, times + 1).join(fresh)
  return times === pieces.length - 1 ? head : [head, ...pieces.slice(times + 1)].join(old)
}

/** str.join. */
export function joinText(self: string, items: Value): string {
  let length = 0
  const parts: string[] = []
  for (const item of iterate(items)) {
    const value = item instanceof Markup ? item.text : item
    if (typeof value !== "string")
      fail("TypeError", `sequence item ${parts.length}: expected str instance, ${typeName(value)} found`)
    length += value.length + self.length
    reserve(0)
    parts.push(value)
  }
  reserve(length)
  return parts.join(self)
}

function pad(self: string, width: Value, fill: Optional, left: (missing: number, width: number) => number): string {
  const char = fill === undefined ? " " : text(fill)
  if (textLength(char) !== 1) fail("TypeError", "The fill character must be exactly one character long")
  const wide = index(width)
  const missing = Math.max(wide - textLength(self), 0)
  reserve(missing)
  const before = left(missing, wide)
  return char.repeat(before) + self + char.repeat(missing - before)
}

/** str.center. */
export function center(self: string, width: Value, fill?: Value): string {
  return pad(self, width, fill, (missing, wide) => Math.floor(missing / 2) + (missing & wide & 1))
}

const chars = (value: Optional) => (value === undefined || value === null ? undefined : text(value))

/** str.strip. */
export const strip = (self: string, set?: Value) => unicode.stripEnd(unicode.stripStart(self, chars(set)), chars(set))

/** str.capitalize. */
export function capitalize(self: string): string {
  const [first, ...rest] = self
  return first === undefined ? "" : limited(unicode.titleChar(first) + lowerAfter(first, rest.join("")))
}

/** Lower case of a text after another one, on which a final sigma depends. */
const lowerAfter = (before: string, rest: string) => (before + rest).toLowerCase().slice(before.toLowerCase().length)

/** Maps characters by whether the previous character has a case. */
function byWords(self: string, start: (char: string) => string, inner: (char: string, at: number) => string): string {
  let inWord = false
  return Array.from(self, (char, at) => {
    const changed = inWord ? inner(char, at) : start(char)
    inWord = unicode.isCased(char)
    return changed
  }).join("")
}

/** Lower case of a character in its context. */
function lowerAt(all: readonly string[], at: number): string {
  const char = all[at] as string
  if (char !== "Σ") return char.toLowerCase()
  step(all.length)
  return lowerAfter(all.slice(0, at).join(""), all.slice(at).join(""))[0] as string
}

function title(self: string): string {
  const all = Array.from(self)
  return limited(byWords(self, unicode.titleChar, (_, at) => lowerAt(all, at)))
}

function isTitle(self: string): boolean {
  let [inWord, any, right] = [false, false, true]
  for (const char of self) {
    const begins = unicode.isUpperChar(char) || unicode.isTitleChar(char)
    const goesOn = unicode.isLowerChar(char)
    if (begins ? inWord : goesOn && !inWord) right = false
    inWord = begins || goesOn
    any ||= inWord
  }
  return any && right
}

const every = (test: (char: string) => boolean) => (self: string) => self !== "" && Array.from(self).every(test)

/** Whether some characters have the wanted case and none the other one. */
export function isCase(self: string, wanted: "upper" | "lower"): boolean {
  const [is, isOther] =
    wanted === "upper" ? [unicode.isUpperChar, unicode.isLowerChar] : [unicode.isLowerChar, unicode.isUpperChar]
  const all = Array.from(self)
  return all.some(is) && !all.some((char) => isOther(char) || unicode.isTitleChar(char))
}

function swapCase(self: string): string {
  const all = Array.from(self)
  const swapped = all.map((char, at) =>
    unicode.isUpperChar(char) ? lowerAt(all, at) : unicode.isLowerChar(char) ? char.toUpperCase() : char,
  )
  return limited(swapped.join(""))
}

function expandTabs(self: string, size: number): string {
  let column = 0
  let result = ""
  for (const char of self) {
    if (char === "\t") {
      const missing = size > 0 ? size - (column % size) : 0
      reserve(missing)
      result += " ".repeat(missing)
      column += missing
    } else {
      result += char
      column = char === "\n" || char === "\r" ? 0 : column + 1
    }
  }
  return limited(result)
}

function zeroFill(self: string, width: Value): string {
  const missing = Math.max(index(width) - textLength(self), 0)
  reserve(missing)
  const [, sign, digits] = /^([+-]?)(.*)$/s.exec(self) as unknown as [string, string, string]
  return sign + "0".repeat(missing) + digits
}

function partition(self: string, separator: Value, last: boolean): Tuple {
  const mark = text(separator)
  if (mark === "") fail("ValueError", "empty separator")
  const at = last ? self.lastIndexOf(mark) : self.indexOf(mark)
  if (at < 0) return new Tuple(last ? ["", "", self] : [self, "", ""])
  return new Tuple([self.slice(0, at), mark, self.slice(at + mark.length)])
}

function count(self: string, wanted: Value, start: Optional, stop: Optional): bigint {
  const needle = text(wanted)
  const within = part(self, start, stop)
  if (within === undefined) return 0n
  return BigInt(needle === "" ? within.chars.length + 1 : within.chars.join("").split(needle).length - 1)
}

export const textMethods = {
  "capitalize()": capitalize,
  "center(width/ fill/?)": center,
  "count(sub/ start/? end/?)": count,
  "endswith(suffix/ start/? end/?)": (self: string, wanted: Value, start: Optional, stop: Optional) =>
    touches(self, wanted, start, stop, "endsWith"),
  "expandtabs(tabsize?)": (self: string, size: Value = 8n) => expandTabs(self, index(size)),
  "find(sub/ start/? end/?)": (self: string, wanted: Value, start: Optional, stop: Optional) =>
    find(self, wanted, start, stop, false),
  "index(sub/ start/? end/?)": (self: string, wanted: Value, start: Optional, stop: Optional) =>
    found(self, wanted, start, stop, false),
  "isalnum()": every(unicode.isAlnum),
  "isalpha()": every(unicode.isAlpha),
  "isascii()": unicode.isAscii,
  "isdecimal()": every(unicode.isDecimal),
  "isdigit()": every(unicode.isDigit),
  "isidentifier()": (self: string) => /^[\p{XIDS}_][\p{XIDC}]*$/u.test(self),
  "islower()": (self: string) => isCase(self, "lower"),
  "isnumeric()": every(unicode.isNumeric),
  "isprintable()": isPrintable,
  "isspace()": every(unicode.isSpace),
  "istitle()": isTitle,
  "isupper()": (self: string) => isCase(self, "upper"),
  "join(iterable/)": joinText,
  "ljust(width/ fill/?)": (self: string, width: Value, fill: Optional) => pad(self, width, fill, () => 0),
  "lower()": (self: string) => limited(self.toLowerCase()),
  "lstrip(chars/?)": (self: string, set: Optional) => unicode.stripStart(self, chars(set)),
  "partition(sep/)": (self: string, separator: Value) => partition(self, separator, false),
  "removeprefix(prefix/)": (self: string, prefix: Value) =>
    self.startsWith(text(prefix)) ? self.slice(text(prefix).length) : self,
  "removesuffix(suffix/)": (self: string, suffix: Value) =>
    text(suffix) !== "" && self.endsWith(text(suffix)) ? self.slice(0, -text(suffix).length) : self,
  "replace(old/ new/ count/?)": (self: string, old: Value, fresh: Value, times: Value = -1n) =>
    replaceText(self, text(old), text(fresh), index(times)),
  "rfind(sub/ start/? end/?)": (self: string, wanted: Value, start: Optional, stop: Optional) =>
    find(self, wanted, start, stop, true),
  "rindex(sub/ start/? end/?)": (self: string, wanted: Value, start: Optional, stop: Optional) =>
    found(self, wanted, start, stop, true),
  "rjust(width/ fill/?)": (self: string, width: Value, fill: Optional) => pad(self, width, fill, (missing) => missing),
  "rpartition(sep/)": (self: string, separator: Value) => partition(self, separator, true),
  "rsplit(sep? maxsplit?)": (self: string, separator: Value = null, limit: Value = -1n) =>
    splitEnd(self, separator, index(limit)),
  "rstrip(chars/?)": (self: string, set: Optional) => unicode.stripEnd(self, chars(set)),
  "split(sep? maxsplit?)": (self: string, separator: Value = null, limit: Value = -1n) =>
    splitStart(self, separator, index(limit)),
  "splitlines(keepends?)": (self: string, keep: Value = false) =>
    limited(truthy(keep) ? unicode.linesWithEnds(self) : unicode.splitLines(self)),
  "startswith(prefix/ start/? end/?)": (self: string, wanted: Value, start: Optional, stop: Optional) =>
    touches(self, wanted, start, stop, "startsWith"),
  "strip(chars/?)": strip,
  "swapcase()": swapCase,
  "title()": title,
  "upper()": (self: string) => limited(self.toUpperCase()),
  "zfill(width/)": zeroFill,
}
