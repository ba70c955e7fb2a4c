/** White space of Python's str.isspace, str.strip and `\s` of re. */
const space = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"

/** White space for a character class of a regular expression. */
export const spaceClass = space

const leading = new RegExp(`^[${space}]+`)
const isSpaceChar = new RegExp(`^[${space}]$`)

export function isSpace(char: string): boolean {
  return isSpaceChar.test(char)
}

/** Text without the characters at the start that are in `chars`, or are white space. */
export function stripStart(value: string, chars?: string): string {
  if (chars === undefined) return value.replace(leading, "")
  const set = new Set(chars)
  let at = 0
  while (at < value.length) {
    const char = String.fromCodePoint(value.codePointAt(at) as number)
    if (!set.has(char)) break
    at += char.length
  }
  return value.slice(at)
}

/** Text without the characters at the end that are in `chars`, or are white space. */
export function stripEnd(value: string, chars?: string): string {
  const set = chars === undefined ? undefined : new Set(chars)
  let end = value.length
  while (end > 0) {
    const pair = end > 1 && /^[\ud800-\udbff][\udc00-\udfff]$/.test(value.slice(end - 2, end))
    const char = value.slice(end - (pair ? 2 : 1), end)
    if (!(set?.has(char) ?? isSpace(char))) break
    end -= char.length
  }
  return value.slice(0, end)
}

const lineEnd = "\\n\\r\\v\\f\\x1c-\\x1e\\x85\\u2028\\u2029"
const line = new RegExp(`[^${lineEnd}]*(?:\\r\\n|[${lineEnd}])|[^${lineEnd}]+$`, "g")
const endOfLine = new RegExp(`(?:\\r\\n|[${lineEnd}])$`)

/** Lines with their ends, as str.splitlines(True) gives them. */
export function linesWithEnds(value: string): string[] {
  return value.match(line) ?? []
}

export function splitLines(value: string): string[] {
  return linesWithEnds(value).map((each) => each.replace(endOfLine, ""))
}

/** Whether all characters are ASCII. */
export const isAscii = (value: string) => !/[\u0080-\uffff]/.test(value)

/** Numeric characters that are digits without being decimal, such as superscripts. */
const otherDigits =
  /^[\xb2\xb3\xb9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}\u{1f100}-\u{1f10a}]$/u
/** Ideographs with a numeric value. */
const numericIdeographs =
  /^[\u3405\u3483\u382a\u3b4d\u4e00\u4e03\u4e07\u4e09\u4e5d\u4e8c\u4e94\u4e96\u4ebf-\u4ec0\u4edf\u4ee8\u4f0d\u4f70\u5104\u5146\u5169\u516b\u516d\u5341\u5343-\u5345\u534c\u53c1-\u53c4\u56db\u58f1\u58f9\u5e7a\u5efe-\u5eff\u5f0c-\u5f0e\u5f10\u62fe\u634c\u67d2\u6f06\u7396\u767e\u8086\u842c\u8cae\u8cb3\u8d30\u9621\u9646\u964c\u9678\u96f6\uf96b\uf973\uf978\uf9b2\uf9d1\uf9d3\uf9fd\u{20001}\u{20064}\u{200e2}\u{20121}\u{2092a}\u{20983}\u{2098c}\u{2099c}\u{20aea}\u{20afd}\u{20b19}\u{22390}\u{22998}\u{23b1b}\u{2626d}\u{2f890}]$/u

export const isDecimal = (char: string) => /^\p{Nd}$/u.test(char)
export const isDigit = (char: string) => isDecimal(char) || otherDigits.test(char)
export const isNumeric = (char: string) => /^\p{N}$/u.test(char) || numericIdeographs.test(char)
export const isAlpha = (char: string) => /^\p{L}$/u.test(char)
export const isAlnum = (char: string) => isAlpha(char) || isNumeric(char)
export const isUpperChar = (char: string) => /^\p{Uppercase}$/u.test(char)
export const isLowerChar = (char: string) => /^\p{Lowercase}$/u.test(char)
export const isTitleChar = (char: string) => /^\p{Lt}$/u.test(char)
export const isCased = (char: string) => isUpperChar(char) || isLowerChar(char) || isTitleChar(char)

/** The title-case form of one character. */
export function titleChar(char: string): string {
  if (/^[\u10d0-\u10ff]$/.test(char)) return char
  const digraph = /^[\u01c4-\u01cc\u01f1-\u01f3]$/.test(char)
  if (digraph) return String.fromCharCode(digraphTitle(char.charCodeAt(0)))
  const upper = char.toUpperCase()
  if (char === "\u0149") return upper
  if (/^[\u1f80-\u1faf\u1fb3\u1fbc\u1fc3\u1fcc\u1ff3\u1ffc]$/.test(char)) return iotaTitle(char)
  const [first, ...rest] = upper
  return `${first}${rest.map((part) => (/^[\u0300-\u036f]$/.test(part) ? part : part === "\u0399" ? "\u0345" : part.toLowerCase())).join("")}`
}

function digraphTitle(code: number): number {
  return code >= 0x1f1 ? 0x1f2 : code - ((code - 0x1c4) % 3) + 1
}

/** Title case of Greek characters with iota subscript. */
function iotaTitle(char: string): string {
  const code = char.charCodeAt(0)
  if (code < 0x1fb0) return String.fromCharCode(code | 8)
  return String.fromCharCode({ 8115: 0x1fbc, 8131: 0x1fcc, 8179: 0x1ffc }[code] ?? code)
}
