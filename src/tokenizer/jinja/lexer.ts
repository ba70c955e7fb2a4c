import { fail } from "./errors.ts"
import { unescapeLiteral } from "./literals.ts"
import { spaceClass, stripEnd } from "./unicode.ts"

export type TokenType =
  | "data"
  | "variable_begin"
  | "variable_end"
  | "block_begin"
  | "block_end"
  | "name"
  | "string"
  | "integer"
  | "float"
  | "operator"
  | "eof"

export interface Token {
  readonly type: TokenType
  readonly value: string
  readonly line: number
}

const s = `[${spaceClass}]`
const sticky = (source: string) => new RegExp(source, "suy")
const patterns = {
  /** Raw block, or the begin of a tag, each with its sign. */
  begin: new RegExp(`\\{%([-+]?)${s}*raw${s}*(?:-%\\}${s}*|%\\})|\\{([%#{])([-+]?)`, "gsu"),
  rawEnd: new RegExp(`\\{%([-+]?)${s}*endraw${s}*(?:\\+%\\}|-%\\}${s}*|%\\}\\n?)`, "gsu"),
  commentEnd: new RegExp(`\\+#\\}|-#\\}${s}*|#\\}\\n?`, "gsu"),
  blockEnd: sticky(`\\+%\\}|-%\\}${s}*|%\\}\\n?`),
  variableEnd: sticky(`-\\}\\}${s}*|\\}\\}`),
  space: sticky(`${s}+`),
}
const tokenPatterns: readonly (readonly [TokenType, RegExp])[] = [
  ["float", sticky("(?<!\\.)(?:\\d+_)*\\d+(?:(?:\\.(?:\\d+_)*\\d+)?[eE][-+]?(?:\\d+_)*\\d+|\\.(?:\\d+_)*\\d+)")],
  ["integer", sticky("0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\\da-fA-F])+|[1-9](?:_?\\d)*|0(?:_?0)*")],
  ["name", sticky("[\\p{XIDC}]+")],
  ["string", sticky(`'[^'\\\\]*(?:\\\\.[^'\\\\]*)*'|"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"`)],
  ["operator", sticky("\\*\\*|//|==|!=|>=|<=|[-+/*%~[\\](){}><=.:|,;]")],
]
const closing: Readonly<Record<string, string>> = { "{": "}", "(": ")", "[": "]" }

/** Tokens of a template, as in Jinja2 with trim_blocks and lstrip_blocks. The last token is "eof". */
export function tokenize(template: string): Token[] {
  return new Lexer(template).run()
}

class Lexer {
  readonly #source: string
  readonly #tokens: Token[] = []
  #at = 0
  #line = 1
  /** Whether the last token ended a line. */
  #lineStarting = true

  constructor(template: string) {
    this.#source = template.replace(/\r\n|\r/g, "\n").replace(/\n$/, "")
  }

  run(): Token[] {
    while (this.#at < this.#source.length) this.#readData()
    this.#push("eof", "")
    return this.#tokens
  }

  #push(type: TokenType, value: string): void {
    this.#tokens.push({ type, value, line: this.#line })
  }

  #advance(text: string): void {
    this.#at += text.length
    for (const char of text) if (char === "\n") this.#line++
    if (text !== "") this.#lineStarting = text.endsWith("\n")
  }

  /** The next match from here on, or undefined. */
  #find(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#source) ?? undefined
  }

  /** Text up to a tag, and the begin of the tag. */
  #readData(): void {
    const match = this.#find(patterns.begin)
    const text = this.#source.slice(this.#at, match?.index)
    if (match === undefined) {
      this.#pushData(text)
      this.#advance(text)
      return
    }
    const [whole, rawSign, kind, sign] = match
    this.#pushData(this.#strip(text, rawSign ?? sign ?? "", kind !== "{"))
    this.#advance(text)
    this.#advance(whole)
    if (kind === undefined) this.#readRaw()
    else if (kind === "#") this.#readComment()
    else this.#readTag(kind === "%" ? "block" : "variable")
  }

  #pushData(text: string): void {
    if (text !== "") this.#push("data", text)
  }

  /** Text before a tag without the white space that the tag removes. */
  #strip(text: string, sign: string, isBlock: boolean): string {
    if (sign === "-") return stripEnd(text)
    if (sign === "+" || !isBlock) return text
    const lineAt = text.lastIndexOf("\n") + 1
    return (lineAt > 0 || this.#lineStarting) && stripEnd(text.slice(lineAt)) === "" ? text.slice(0, lineAt) : text
  }

  #readRaw(): void {
    if (this.#at === this.#source.length) return
    const match = this.#find(patterns.rawEnd) ?? this.#fail("Missing end of raw directive")
    const text = this.#source.slice(this.#at, match.index)
    this.#pushData(this.#strip(text, match[1] ?? "", true))
    this.#advance(text)
    this.#advance(match[0])
  }

  #readComment(): void {
    if (this.#at === this.#source.length) return
    const match = this.#find(patterns.commentEnd) ?? this.#fail("Missing end of comment tag")
    this.#advance(this.#source.slice(this.#at, match.index))
    this.#advance(match[0])
  }

  #readTag(kind: "block" | "variable"): void {
    const end = kind === "block" ? patterns.blockEnd : patterns.variableEnd
    const open: string[] = []
    this.#push(`${kind}_begin`, "")
    while (this.#at < this.#source.length) {
      const last = open.length === 0 ? this.#find(end) : undefined
      if (last !== undefined) {
        this.#push(`${kind}_end`, "")
        this.#advance(last[0])
        return
      }
      this.#readToken(open)
    }
  }

  #readToken(open: string[]): void {
    const space = this.#find(patterns.space)
    if (space !== undefined) {
      this.#advance(space[0])
      return
    }
    for (const [type, pattern] of tokenPatterns) {
      const match = this.#find(pattern)?.[0]
      if (match === undefined) continue
      if (type === "operator") this.#balance(open, match)
      if (type === "name" && !/^[\p{XIDS}_]/u.test(match)) this.#fail("Invalid character in identifier")
      this.#push(type, type === "string" ? unescapeLiteral(match.slice(1, -1)) : match)
      this.#advance(match)
      return
    }
    this.#fail(`unexpected char '${String.fromCodePoint(this.#source.codePointAt(this.#at) as number)}'`)
  }

  #balance(open: string[], mark: string): void {
    const expected = closing[mark]
    if (expected !== undefined) open.push(expected)
    else if (mark === "}" || mark === ")" || mark === "]") {
      const last = open.pop()
      if (last !== mark) this.#fail(`unexpected '${mark}'${last === undefined ? "" : `, expected '${last}'`}`)
    }
  }

  #fail(reason: string): never {
    return fail("TemplateSyntaxError", `${reason} (line ${this.#line})`)
  }
}
