import { fail, unsupported } from "./errors.ts"
import type { Token, TokenType } from "./lexer.ts"

/** Tokens with a place. Marks are of the type "operator", keywords of the type "name". */
export class TokenStream {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  get current(): Token {
    return this.#tokens[this.#at] as Token
  }
  /** The token after the current one. */
  get following(): Token {
    return this.#tokens[Math.min(this.#at + 1, this.#tokens.length - 1)] as Token
  }
  next(): Token {
    const token = this.current
    if (token.type !== "eof") this.#at++
    return token
  }
  is(type: TokenType, value?: string): boolean {
    return this.current.type === type && (value === undefined || this.current.value === value)
  }
  isName(value: string): boolean {
    return this.is("name", value)
  }
  isMark(value: string): boolean {
    return this.is("operator", value)
  }
  /** Advances if this is the current token. */
  skip(type: TokenType, value: string): boolean {
    const found = this.is(type, value)
    if (found) this.next()
    return found
  }
  skipName(value: string): boolean {
    return this.skip("name", value)
  }
  skipMark(value: string): boolean {
    return this.skip("operator", value)
  }
  expect(type: TokenType, value?: string): Token {
    if (this.is(type, value)) return this.next()
    const wanted = value ?? describe(type)
    if (this.current.type === "eof") return this.fail(`unexpected end of template, expected '${wanted}'.`)
    return this.fail(`expected token '${wanted}', got '${this.describe()}'`)
  }
  expectMark(value: string): Token {
    return this.expect("operator", value)
  }
  /** The current token, for messages. */
  describe(): string {
    const { type, value } = this.current
    return type === "name" || type === "operator" ? value : describe(type)
  }
  fail(reason: string): never {
    return fail("TemplateSyntaxError", `${reason} (line ${this.current.line})`)
  }
  unsupported(what: string): never {
    return unsupported(`${what} (line ${this.current.line})`)
  }
}

function describe(type: TokenType): string {
  const described: Partial<Record<TokenType, string>> = {
    block_begin: "begin of statement block",
    block_end: "end of statement block",
    variable_begin: "begin of print statement",
    variable_end: "end of print statement",
    data: "template data / text",
    eof: "end of template",
  }
  return described[type] ?? type
}
