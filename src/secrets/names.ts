// Names of secrets: of keys, flags, headers, variables and URL parameters.

/** Names whose values are always secrets. */
const strong =
  /^(secrets?|passwords?|passwd|pwd|passphrases?|credentials?|authorization|signature|.*(passwords?|passwd|passphrase|secret|credentials?|(api|access|private|secret|auth|account|storage|signing|encryption)(keys?|tokens?)))$/i
/** Ambiguous names: a number under one of these is a count. */
const weak = /^(keys?|tokens?|pass|cookies?|bearer|pat|sig|.*token)$/i
/** Last words of names that are about a secret without being one: --token-file, api_key_env, max_tokens_limit. */
const about = /^(file|path|dir|directory|folder|env|variable|name|type|kind|limit|count|length|size|budget|weights?)$/i

export type Secrecy = "strong" | "weak" | undefined

/** Whether a name is that of a secret: apiKey, HF_TOKEN, --client-secret, x-api-key, PGPASSWORD. */
export function secrecyOf(name: string): Secrecy {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.replace(/\d+$/, ""))
    .filter((word) => word !== "")
  if (about.test(words.at(-1) ?? "")) return undefined
  const pairs = words.map((word, at) => `${words[at - 1] ?? ""}${word}`)
  if ([...words, ...pairs].some((word) => strong.test(word))) return "strong"
  return words.some((word) => weak.test(word)) ? "weak" : undefined
}

/** Whether a text looks like a generated secret: long and not a plain word. */
export function looksSecret(text: string): boolean {
  if (text.length < 8 || !/^[\w.~+/=:-]+$/.test(text)) return false
  return /\d/.test(text) || /[a-z][A-Z]|[A-Z]{2}[a-z]/.test(text) || text.length >= 24
}

/** Whether a text is a count or a switch, and so not a secret under an ambiguous name. */
export function isPlain(text: string): boolean {
  return /^(-?\d{1,9}(\.\d+)?|true|false|on|off|null|none|auto|yes|no)$/i.test(text)
}
