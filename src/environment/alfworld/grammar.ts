import { readJson } from "../../json/depth.ts"
import { fault } from "./fault.ts"

/** One expansion of a symbol. The first rule whose condition holds is used. */
export interface Rule {
  readonly condition?: string
  readonly rhs: string
}

/** Texts of an action: command and feedback. */
export interface Wording {
  readonly template: string
  readonly feedback: string
}

export interface Grammar {
  readonly rules: ReadonlyMap<string, readonly Rule[]>
  /** Texts of actions by the lower-case name of the action. */
  readonly wordings: ReadonlyMap<string, Wording>
}

// Alternatives: comment or white space, text in three or one quotation marks, name, punctuation.
const token = /\s+|#[^\n]*|\/\/[^\n]*|"""([\s\S]*?)"""|"([^"\n]*)"|([\w.-]+)|::|[{};]/y

interface Token {
  readonly text: string
  readonly quoted?: string | undefined
}

/**
 * Reads a TextWorld grammar: `grammar :: """{JSON}""";` with rules by symbol, and `action NAME { template :: "…";
 * feedback :: "…"; grammar :: """…"""; }`. A later definition of a symbol replaces an earlier one.
 */
export function readGrammar(text: string): Grammar {
  const tokens = tokenize(text)
  const rules = new Map<string, readonly Rule[]>()
  const wordings = new Map<string, Wording>()
  let at = 0
  const take = (expected?: string): Token => {
    const next = tokens[at++] ?? fault("the grammar ends too early")
    if (expected !== undefined && next.text !== expected)
      fault(`the grammar has "${next.text}" instead of "${expected}"`)
    return next
  }
  const takeField = (): string => {
    take("::")
    const { quoted, text } = take()
    if (quoted === undefined) fault(`the grammar has "${text}" instead of a text in quotation marks`)
    take(";")
    return quoted
  }
  while (at < tokens.length) {
    const keyword = take().text
    if (keyword === "grammar") addRules(takeField(), rules)
    else if (keyword === "action") {
      const name = take().text
      const fields = new Map<string, string>()
      take("{")
      while (tokens[at]?.text !== "}") fields.set(take().text, takeField())
      take("}")
      const field = (key: string) => fields.get(key) ?? fault(`the action ${name} has no ${key} in the grammar`)
      wordings.set(name.toLowerCase(), { template: field("template"), feedback: field("feedback") })
      addRules(fields.get("grammar") ?? "{}", rules)
    } else fault(`the grammar has "${keyword}" instead of "grammar" or "action"`)
  }
  return { rules, wordings }
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  for (token.lastIndex = 0; token.lastIndex < text.length; ) {
    const start = token.lastIndex
    const [all, long, short, name] = token.exec(text) ?? fault(`the grammar cannot be read at character ${start}`)
    const quoted = long ?? short
    if (quoted !== undefined || name !== undefined || /^[:{};]/.test(all)) tokens.push({ text: all, quoted })
  }
  return tokens
}

function addRules(json: string, rules: Map<string, readonly Rule[]>): void {
  let symbols: unknown
  try {
    symbols = readJson(withoutComments(json))
  } catch (error) {
    fault(`the rules of the grammar are not JSON (${(error as Error).message})`)
  }
  if (typeof symbols !== "object" || symbols === null) fault("the rules of the grammar must be an object")
  for (const [symbol, list] of Object.entries(symbols)) {
    const isRule = (rule: Partial<Rule> | null) =>
      typeof rule?.rhs === "string" && (rule.condition === undefined || typeof rule.condition === "string")
    if (!Array.isArray(list) || !list.every(isRule))
      fault(`the rules of ${symbol} in the grammar must each have a text "rhs"`)
    rules.set(symbol, list)
  }
}

/** JSON without lines whose first character after blanks is `#`. */
function withoutComments(json: string): string {
  if (!json.includes("#")) return json
  const isComment = (line: string) => line.trimStart().startsWith("#")
  return json
    .split("\n")
    .map((line) => (isComment(line) ? "" : line))
    .join("\n")
}
