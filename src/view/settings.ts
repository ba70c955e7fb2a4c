import { isObject } from "../options/read.ts"
import { leaves, type RunConfig } from "../training/run-config.ts"
import type { RunInfo } from "./data/source.ts"

/** Every value of a configuration by its dotted key: lists as JSON, as text what JSON has no number for, and no secrets. */
export function settingsOf(config: RunConfig): RunInfo["settings"] {
  return Object.fromEntries(
    [...leaves(config)].map(([key, value]) => {
      const told = withoutSecrets(value, key.split(".").some(nameIsSecret))
      if (told === null || typeof told === "string" || typeof told === "boolean" || Number.isFinite(told))
        return [key, told as string]
      return [key, typeof told === "number" ? String(told) : JSON.stringify(told)]
    }),
  )
}

const redacted = "[redacted]"

const secretWords =
  "keys?|tokens?|secrets?|passwords?|passwd|pwd|passphrases?|credentials?|authorization|cookies?|bearer|pat"
const secretWord = new RegExp(`^(${secretWords})$`, "i")

/** Keys of ours that speak of a model's tokens. */
const harmless: ReadonlySet<string> = new Set(["tokenWeights"])

/** apiKey, HF_TOKEN, --client-secret, x-api-key */
function nameIsSecret(name: string): boolean {
  if (harmless.has(name)) return false
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").split(/[^A-Za-z0-9]+/)
  return words.some((word) => secretWord.test(word) || /^(api|access|private)keys?$/i.test(word))
}

/** Only text is a secret: `maxReplyTokens` is a number. */
function withoutSecrets(value: unknown, secret: boolean): unknown {
  if (typeof value === "string") return secret && value !== "" ? redacted : textWithoutSecrets(value)
  if (Array.isArray(value))
    // What follows a flag is its value: --api-key xyz
    return value.map((one, at) => withoutSecrets(one, secret || isSecretFlag(value[at - 1])))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, withoutSecrets(inner, secret || nameIsSecret(key))]),
  )
}

function isSecretFlag(word: unknown): boolean {
  return typeof word === "string" && /^--?[\w-]+:?$/.test(word) && nameIsSecret(word)
}

/** Tokens that are known by how they begin. */
const wellKnown = /\b((sk-|hf_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|AKIA)[\w-]{16,}|gigpo-[\w-]{43})/g

/** Addresses with a password, `name=value` where the name says so, and what is a token by its looks. */
function textWithoutSecrets(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/gi, `$1${redacted}@`)
    .replace(/([\w-]+)=([^\s&#;,"']+)/g, (all, name: string) => (nameIsSecret(name) ? `${name}=${redacted}` : all))
    .replace(/\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi, `$1 ${redacted}`)
    .replace(wellKnown, redacted)
}
