import { isPlain, looksSecret, type Secrecy, secrecyOf } from "./names.ts"

// Secrets in texts: addresses, headers, assignments, flags, JSON. Every expression starts at a word boundary, so that
// the time is linear in the length of the text.

export const redacted = "[redacted]"

/** Value, quoted or up to white space; quotes may be escaped, as in JSON inside a text. */
const value = String.raw`(?:\\*"[^"]*"|\\*'[^']*'|[^\s&;,"'{}\[\]()]+)`

/** Function that redacts one kind of secret. */
type Rule = (text: string) => string

const replacing =
  (pattern: RegExp, replace: (...found: string[]) => string): Rule =>
  (text) =>
    text.replace(pattern, replace)

const rules: readonly Rule[] = [
  replacing(/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]*(-----END [A-Z ]{0,30}PRIVATE KEY-----)?/g, () => redacted),
  // https://user:password@host
  replacing(/(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/?#]*@/gi, (_, scheme) => `${scheme}${redacted}@`),
  // Authorization: Bearer x, Cookie: a=b; c=d: the rest of the line or of the quoted text.
  replacing(
    /(?<![\w-])((?:(?:proxy-)?authorization|(?:set-)?cookie)\\*["']?\s{0,20}[:=]\s{0,20}\\*["']?)((?:Bearer|Basic|Token|Digest|ApiKey)\s+)?(?:=\\*"[^"]*"|=\\*'[^']*'|[^"'\r\n])+/gi,
    (_, head, scheme = "") => `${head}${scheme}${redacted}`,
  ),
  withoutPairs,
  // --name value
  replacing(
    new RegExp(String.raw`(?<!\S)(--?[A-Za-z][\w-]{0,60})(\s{1,20})(?!-)(${value})`, "g"),
    (all, name, blank, given) => (isSecret(secrecyOf(name!), given!) ? `${name}${blank}${redacted}` : all!),
  ),
  // -u user:password
  replacing(
    /(?<!\S)(-u|--user|--proxy-user)(=|\s{1,20})(["']?)(?!\d+:\d+(?!\S))([^\s:"']{1,100}:)[^\s"']+/g,
    (_, name, between, quote, user) => `${name}${between}${quote}${user}${redacted}`,
  ),
  // Bearer x, unless it is prose
  replacing(/(?<![\w-])(Bearer|Basic)(\s{1,20})([\w.~+/=-]{8,})/gi, (all, scheme, blank, token) =>
    looksSecret(token!) ? `${scheme}${blank}${redacted}` : all!,
  ),
  // Tokens recognized by their prefix or by the address of their service.
  replacing(
    /(?<!\w)((?:sk-|hf_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|tml-|npm_|pypi-|gsk_|xai-|[rsp]k_(?:live|test)_|SG\.|ya29\.)[\w.-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|gigpo-[\w-]{43}|(?<!-)eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)/g,
    () => redacted,
  ),
  replacing(
    /(hooks\.slack\.com\/services\/|\/api\/webhooks\/\d{1,30}\/|api\.telegram\.org\/bot)[\w:/-]+/g,
    (_, service) => `${service}${redacted}`,
  ),
]

/** Text with its secrets redacted. */
function textWithoutSecrets(text: string): string {
  return rules.reduce((safe, rule) => rule(safe), text)
}

/**
 * Argument with its secrets redacted, given the arguments before it: ["--api-key", "x"], ["-u", "me:x"], ["x-api-key:",
 * "x"].
 */
export function argumentWithoutSecrets(argument: string, before: readonly unknown[]): string {
  const attached =
    before.some((word) => /(^|\/)(mysql|mariadb|sshpass)[\w-]*$/.test(String(word))) && /^-p./.test(argument)
  if (attached) return `-p${redacted}`
  const name = before.at(-1)
  if (typeof name !== "string" || argument === "") return textWithoutSecrets(argument)
  if (/^-[pP]$/.test(name) && isPassword(argument, before)) return redacted
  if (name === "-a" && before.some((word) => /(^|\/)redis-cli$/.test(String(word)))) return redacted
  const flagOrHeader = /^(--?[\w-]+:?|[\w-]+:)$/.test(name) && !argument.startsWith("-")
  if (flagOrHeader && isSecret(secrecyOf(name), argument)) return redacted
  if (!/^(-u|--user|--proxy-user)$/.test(name)) return textWithoutSecrets(argument)
  return textWithoutSecrets(`${name} ${argument}`).slice(name.length + 1)
}

/** Number of earlier arguments that are considered. */
export const lookedBack = 32

/** Command on one line with its secrets redacted, for messages. */
export function commandWithoutSecrets(command: readonly string[]): string {
  const words = command.map((word, at) => argumentWithoutSecrets(word, command.slice(Math.max(at - lookedBack, 0), at)))
  return words.join(" ")
}

/** Programs whose -p is not a password. */
const others = /^(mkdir|cp|rsync|cargo|perl|tar|ps)$/

/** Whether the value of -p is a password, not a port or an option of another meaning. */
function isPassword(argument: string, before: readonly unknown[]): boolean {
  if (/^[\d.:/-]*(\/(tcp|udp))?$/.test(argument)) return false
  const words = before.map((word) => String(word).split("/").at(-1)!)
  return !words.some((word) => others.test(word)) && words.at(-2) !== "node"
}

function isSecret(secrecy: Secrecy, text: string): boolean {
  return secrecy === "strong" || (secrecy === "weak" && !isPlain(text))
}

/** Redacts name=value, name: value and "name": "value". Values of other names may contain further pairs. */
function withoutPairs(text: string): string {
  const name = /(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]{0,100})(\\*["']?\s{0,20}[:=]\s{0,20})/g
  const after = new RegExp(value, "y")
  let [safe, done] = ["", 0]
  for (let found = name.exec(text); found; found = name.exec(text)) {
    const secrecy = /authorization$|cookie$/i.test(found[1]!) ? undefined : secrecyOf(found[1]!)
    if (secrecy === undefined) continue
    after.lastIndex = name.lastIndex
    const given = after.exec(text)?.[0]
    if (given === undefined || !isValue(given, secrecy, found[2]!)) continue
    const [open] = /^(?:\\*["'])?/.exec(given)!
    const close = given.endsWith(open) ? open : open.at(-1)!
    safe += `${text.slice(done, name.lastIndex)}${open}${redacted}${close}`
    done = name.lastIndex = after.lastIndex
  }
  return safe + text.slice(done)
}

/** Whether the text after a name is its secret, and not a count, empty, or prose with a colon. */
function isValue(given: string, secrecy: Secrecy, between: string): boolean {
  const inner = given.replace(/^\\*["']/, "").replace(/\\?["']$/, "")
  const prose = /^\s*:\s/.test(between) && secrecy === "weak" && !looksSecret(inner)
  return inner !== "" && inner !== redacted && !prose && isSecret(secrecy, inner)
}
